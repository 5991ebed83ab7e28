"""Runners, one for each kind of search."""
