"""Campaigns that search for the highest mean score."""
