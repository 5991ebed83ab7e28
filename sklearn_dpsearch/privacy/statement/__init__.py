"""What was spent, told to people who must decide about it: one structure, as HTML, Markdown and JSON."""
