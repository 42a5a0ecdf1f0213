"""The schema, and work on a whole database."""
