"""Baseline selectors for the best mean: those of the papers, and sequential halving."""
