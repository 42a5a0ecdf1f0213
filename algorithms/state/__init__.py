"""State that selectors of all objectives keep in the same way."""
