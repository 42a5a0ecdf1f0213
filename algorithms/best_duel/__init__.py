"""Best duel: which arm is preferred over every other, by pairwise comparisons.

A duel of arms i and j on a random example has an outcome in [0, 1]: 1 if i is preferred, 0 if j is, 1/2 for a
tie. Examples are drawn with replacement; for pairs of deterministic arms, without. No step costs O(n).
`llm_po` proposes duels; all methods share `config`, `duel_record`, `win_tables` and `stopping`.
`count_evidence` is the evidence from counts of duels, by `winner_tests` and `preference_intervals`;
`bradley_terry` fits a model of strengths.
"""
