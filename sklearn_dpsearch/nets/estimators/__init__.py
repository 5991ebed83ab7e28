"""Public estimators: nets for tables, skorch nets for users' modules, and the parts that both
share."""
