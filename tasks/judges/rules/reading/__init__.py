"""Parse an output: its answer, its choice, its number."""
