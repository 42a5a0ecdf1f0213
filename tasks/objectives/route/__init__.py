"""Routing: a candidate is chosen for each prompt as it comes."""
