"""Requests for the most probable of fixed texts."""
