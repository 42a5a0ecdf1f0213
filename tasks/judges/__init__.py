"""Judges: from a candidate's output, or two, to a score or the reason why it has none."""
