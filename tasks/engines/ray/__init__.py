"""Engines on the machines of a Ray cluster. Nothing else imports Ray, which is an extra."""
