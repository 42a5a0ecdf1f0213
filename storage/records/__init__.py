"""Rows written and read, one kind of row a file."""
