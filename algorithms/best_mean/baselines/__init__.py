"""Baseline selectors for the best mean: the papers', and sequential halving."""
