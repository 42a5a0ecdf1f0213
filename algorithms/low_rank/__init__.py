"""Low-rank models of a score matrix: what the scores seen so far say about those not seen.

Rows are arms, columns are examples. One model per file; which arm to ask next is not decided here.
"""
