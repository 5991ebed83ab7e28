"""Statement of a release's privacy cost for decision makers: one structure, as HTML, Markdown and
JSON."""
