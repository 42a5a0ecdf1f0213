"""Best duel: which arm is preferred over every other, by pairwise comparisons.

A duel of arms i and j on a random example has an outcome in [0, 1]: 1 if i is preferred, 0 if j is, 1/2 for a
tie. Examples are drawn with replacement, or, for pairs of deterministic arms, without. No step costs O(n).
One method per file. `config`, `duel_record`, `evidence`, `standings` and `stopping` hold what they share;
`counts` and `bradley_terry` hold the evidence from counts of duels and from a model of strengths.
"""
