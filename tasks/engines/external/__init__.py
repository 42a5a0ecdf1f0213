"""Engines that are not Winnow's: of other packages, and functions of programs."""
