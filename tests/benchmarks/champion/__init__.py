"""`make bench-champion`: comparisons to a valid stop, for champion, its two halves and UCB-E."""
