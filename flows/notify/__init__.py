"""Telling webhooks how a campaign ended."""
