"""Candidates (models, prompts, sampling settings) and the cache keys of their outputs."""
