"""Version of the library."""

__version__ = "0.4.0"
