"""Engines on the machines of a Ray cluster. No other package imports Ray, which is an extra."""
