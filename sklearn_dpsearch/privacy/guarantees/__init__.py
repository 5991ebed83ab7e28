"""What is promised: the values, how they compose, and the tightest of several bounds."""
