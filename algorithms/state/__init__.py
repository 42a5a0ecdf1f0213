"""State and helpers shared by the selectors of all objectives."""
