"""Judges in which models score one output at a time."""
