"""What selectors of all objectives remember in the same way."""
