"""Judges in processes of their own: by libraries that read model outputs, and by code of users."""
