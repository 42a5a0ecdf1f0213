"""Candidates: models, prompts and sampling settings, and the keys under which their outputs are stored."""
