"""Exact draws of noise and coins. Their privacy cost is in ``selection`` and ``guarantees``."""
