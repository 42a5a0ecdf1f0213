"""Sentences about an answer, derived from its data."""
