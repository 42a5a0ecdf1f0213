"""Selectors as published: for benchmarks, and available by name."""
