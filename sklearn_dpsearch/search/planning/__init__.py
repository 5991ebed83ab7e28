"""Before the data: what is refused, what may be drawn, what the whole costs."""
