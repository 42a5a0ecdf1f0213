"""An objective that a test adds to a copy of Winnow: which candidates have a mean of at least a given one?"""
