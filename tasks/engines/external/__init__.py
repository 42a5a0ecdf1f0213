"""Engines from outside Winnow: of other packages, or a function of the running program."""
