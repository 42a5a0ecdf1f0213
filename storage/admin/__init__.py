"""The schema, and operations on a whole database."""
