"""Python interface for notebooks and other programs."""
