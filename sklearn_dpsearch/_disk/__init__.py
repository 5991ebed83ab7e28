"""Files that outlast a crash, and files that only their owner may read."""
