"""Queries for campaigns with one objective."""
