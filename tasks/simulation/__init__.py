"""Selectors replayed on tables of scores."""
