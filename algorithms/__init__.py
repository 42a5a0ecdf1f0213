"""Adaptive selection: which pairs of arm and example to observe next, and when to stop.

Pure computation on integers and arrays: no I/O, no clock, no global randomness. `registry` makes a selector
by name, `protocols` defines the contract of a selector, `errors` the exceptions.
"""
