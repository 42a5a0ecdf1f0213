"""Selectors of best means to compare with: those of the papers, and sequential halving."""
