"""Best mean: which arm has the highest mean score over all n examples of a fixed benchmark.

The K x n scores lie in [0, 1] and are revealed pair by pair, each once. Baselines are in `baselines`;
`config`, `score_matrix` and `stopping` hold what they share.
"""
