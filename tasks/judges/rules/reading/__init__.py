"""Parsing of outputs: the answer, choice or number in a text."""
