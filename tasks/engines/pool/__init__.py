"""Engines of several models at once, and which of them are loaded."""
