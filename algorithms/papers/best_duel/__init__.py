"""Published selectors of duels."""
