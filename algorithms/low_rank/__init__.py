"""Low-rank models of a score matrix: predictions of unobserved scores from observed ones.

Rows are arms, columns are examples. One model per file; proposals are made elsewhere.
"""
