"""Queries about stored campaigns."""
