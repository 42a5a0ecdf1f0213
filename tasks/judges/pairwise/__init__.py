"""Judges of pairs: from two candidates' answers to a preference or a reason without one."""
