"""Campaigns with human judges: the tasks of a round, and the annotators' answers."""
