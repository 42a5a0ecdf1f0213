"""Datasets and score tables, from files to values."""
