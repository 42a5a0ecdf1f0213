"""Low-rank models of a score matrix.

They predict unobserved scores from observed ones. Rows are arms, columns are examples. Each model has its own
file. Selectors that use the models are elsewhere.
"""
