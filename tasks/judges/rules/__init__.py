"""Judges that score outputs by fixed rules."""
