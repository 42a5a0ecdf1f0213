"""Queries about the campaigns of the database."""
