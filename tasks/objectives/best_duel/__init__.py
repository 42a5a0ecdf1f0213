"""Campaigns that look for the candidate that wins its duels."""
