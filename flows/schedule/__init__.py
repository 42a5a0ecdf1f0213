"""Campaigns that run by the clock."""
