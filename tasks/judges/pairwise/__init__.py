"""Pair judges: from two candidates' answers to a preference or to the reason why there is none."""
