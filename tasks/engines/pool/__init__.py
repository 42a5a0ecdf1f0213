"""Engines of several models, and which of them are loaded."""
