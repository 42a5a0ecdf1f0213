"""Sections of a campaign's file; each module has those of one concept."""
