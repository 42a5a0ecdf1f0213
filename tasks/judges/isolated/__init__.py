"""Judges in separate processes: by libraries that read model outputs, or by users' code."""
