"""Posteriors of each arm's score, given a prompt."""
