"""Transformers in this process."""
