"""Canaries: whether a served model still is what it was, told from its answers to the same few prompts."""
