"""Whether candidates are no worse than a baseline, by bets on the same random examples.

`evidence` puts the scores of an arm and of the baseline on one example together and bets on their
differences, `selector` asks and decides. docs/how-a-gate-decides.md has the proof.
"""
