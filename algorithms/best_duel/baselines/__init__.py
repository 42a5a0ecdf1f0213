"""Selectors of duels to compare with."""
