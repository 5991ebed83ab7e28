"""Arithmetic that only ever overstates: loss distributions, exact numbers, one bisection."""
