"""Warnings of what may be wrong with a campaign though nothing failed."""
