"""Published selectors of the best mean."""
