"""What differs between the searches: a runner for each kind."""
