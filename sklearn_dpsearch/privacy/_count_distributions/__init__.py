"""Distributions of the secret number of runs K, and exact draws from them."""
