"""Rows as tables for people and as files for programs: the one place where they are written."""
