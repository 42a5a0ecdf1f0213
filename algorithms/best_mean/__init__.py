"""Best mean: which arm has the highest mean score over all n examples.

The examples are those of a fixed benchmark. The K x n scores lie in [0, 1] and are revealed pair by pair,
each once. Baselines are in `baselines`; all methods share `config`, `score_matrix` and `stopping`.
"""
