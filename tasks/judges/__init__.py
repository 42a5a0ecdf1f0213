"""Judges: from a candidate's text to a score or to the reason why there is none."""
