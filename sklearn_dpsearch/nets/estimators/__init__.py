"""What users call: nets for tables, skorch nets for modules of their own, and what both share."""
