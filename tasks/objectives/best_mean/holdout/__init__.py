"""Held-out examples, which selection never uses; the finalists are scored on them."""
