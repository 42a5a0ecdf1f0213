"""Adaptive selection: which pairs to observe next, and when to stop.

A pair is an arm and an example. Pure computation on integers and arrays: no I/O, no clock, no global
randomness. `registry` makes a selector by name, `protocols` defines the contract of a selector, `errors` the
exceptions.
"""
