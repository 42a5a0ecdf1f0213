"""Predictions of scores that nobody asked for yet."""
