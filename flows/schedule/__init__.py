"""Campaigns on a schedule."""
