"""Judges in processes of their own: by libraries that read what models write, and by code of users."""
