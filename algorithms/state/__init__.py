"""State that selectors of all objectives share."""
