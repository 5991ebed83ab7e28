"""Version of the library, and the address of its documentation."""

__version__ = "0.2.0"
#: Pages of the latest version; the same address as in pyproject.toml.
SITE = "https://sklearn-dpsearch.readthedocs.io/en/stable"
