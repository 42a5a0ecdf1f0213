"""Selectors simulated on tables of scores."""
