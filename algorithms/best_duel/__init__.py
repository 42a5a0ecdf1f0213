"""Best duel: which arm is preferred over every other, when two at a time can be compared?

A duel of arms i and j on a random example has an outcome in [0, 1]: 1 when i is preferred, 0 when j is, 1/2
for a tie. Examples are drawn with replacement, or from those that a pair has not met, and nothing costs O(n).
One method per file; `config`, `duel_record`, `evidence`, `standings` and `stopping` hold what they share,
`counts` and `bradley_terry` what is known by counts of duels and by a model of strengths.
"""
