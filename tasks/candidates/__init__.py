"""Candidates: models, prompts and sampling, and the keys under which their texts are stored."""
