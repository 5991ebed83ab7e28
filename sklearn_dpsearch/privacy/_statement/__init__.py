"""Statement of a release's privacy cost: one structure, as HTML, Markdown and JSON."""
