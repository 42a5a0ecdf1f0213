"""Processes that hold an engine, and how they are talked to."""
