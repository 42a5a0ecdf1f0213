"""Prompts as vectors of length 1, so that what was learned of a prompt holds for those like it."""
