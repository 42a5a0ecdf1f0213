"""Judges in separate processes: by libraries that read model outputs, and by code of users."""
