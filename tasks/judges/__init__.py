"""Judges: from a candidate's output to a score, or to the reason why there is none."""
