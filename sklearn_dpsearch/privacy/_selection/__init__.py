"""Privacy cost of choosing among private results: a file for each theorem."""
