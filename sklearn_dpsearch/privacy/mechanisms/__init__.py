"""Drawing noise and coins exactly; what they cost is in the other rooms."""
