"""Models that score one output at a time."""
