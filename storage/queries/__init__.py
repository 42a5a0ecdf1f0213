"""Queries of the database, and its views."""
