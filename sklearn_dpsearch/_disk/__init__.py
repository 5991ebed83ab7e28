"""What must outlast a crash, and what nobody else may read."""
