"""Rows as tables for people and as files for programs; all rows are written here."""
