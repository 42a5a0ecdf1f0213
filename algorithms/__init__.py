"""Adaptive selection: which pairs of arm and example to observe next, and when the answer is certain.

Pure computation on integers and arrays: no I/O, no clock, no global randomness. `registry` makes a
selector by name, `protocols` says what every selector promises, `errors` what can go wrong.
"""
