"""Selectors as published, for benchmarks; they can also be chosen by name."""
