"""Posteriors: beliefs about each arm's score, given a prompt."""
