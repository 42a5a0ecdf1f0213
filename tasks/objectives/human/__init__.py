"""Campaigns with human judges: tasks of a round, and the annotators' judgments."""
