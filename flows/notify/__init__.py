"""Notify webhooks of the outcome of a campaign's run."""
