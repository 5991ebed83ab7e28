"""Strategies: what differs between searches. Here is what several searches share."""
