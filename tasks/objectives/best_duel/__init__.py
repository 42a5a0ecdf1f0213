"""Campaigns that search for the candidate that wins its duels."""
