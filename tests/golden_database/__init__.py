"""A database as an earlier Winnow left it: campaigns of every objective, some ended, most to be resumed.

`golden.db.gz` was made once, by `make.py`, with code that drew tokens along cumulated probabilities and put a
second token of beginning before a prompt that spells it out. `outcomes.json` is what that same code then made
of each campaign. Neither is made again when Winnow changes: a campaign goes on by the rules it began with.
"""
