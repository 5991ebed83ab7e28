"""Public estimators: nets for tables, skorch nets for users' modules, and their shared parts."""
