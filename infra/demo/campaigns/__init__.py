"""Campaigns that the demo runs, one file an objective."""
