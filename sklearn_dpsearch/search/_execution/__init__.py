"""With the data: candidates run in silence, in a public number of tasks."""
