"""Engines from outside Winnow: of other packages, and functions of programs."""
