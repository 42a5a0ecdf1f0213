"""Predictions of unobserved scores."""
