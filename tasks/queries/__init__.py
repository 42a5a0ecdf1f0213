"""Queries about stored campaigns: status, views, comparisons, checks and warnings."""
