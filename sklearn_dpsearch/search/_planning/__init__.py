"""Planning before the data: checks, the space of candidates, and the cost."""
