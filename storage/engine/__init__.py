"""Connections to SQLite and PostgreSQL."""
