"""Sums over rounds: added as the rounds are stored, and counted again where a database is checked."""
