"""Guarantees as values, their composition, and the tightest of several bounds."""
