"""Warnings about possible problems of a campaign although nothing failed."""
