"""Shared parts of all agents: keys of the campaign's file, seats, attempts, and parsing of replies."""
