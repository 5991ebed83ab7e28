"""Laws of the secret number of runs K, and drawing from them."""
