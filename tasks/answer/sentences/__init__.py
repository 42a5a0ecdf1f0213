"""Sentences about an answer."""
