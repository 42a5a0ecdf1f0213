"""Routing: choose a candidate for each arriving prompt."""
