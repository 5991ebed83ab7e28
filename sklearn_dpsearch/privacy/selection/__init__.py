"""What choosing among private results costs: a file for each theorem, its published rivals beside it."""
