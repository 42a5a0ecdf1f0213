"""Campaigns as runs of experiment trackers."""
