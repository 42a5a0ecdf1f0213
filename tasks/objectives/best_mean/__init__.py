"""Campaigns that look for the highest mean score."""
