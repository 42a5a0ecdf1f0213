"""Gate: which candidates are no worse than a baseline, by bets on the same random examples.

`evidence` pairs the scores of an arm and of the baseline on each example and bets on their differences;
`selector` proposes and decides. docs/how-a-gate-decides.md has the proof.
"""
