"""Simulate selectors on tables of scores, and forecast the cost of campaigns."""
