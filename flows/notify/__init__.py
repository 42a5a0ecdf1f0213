"""Notify webhooks of a campaign's outcome."""
