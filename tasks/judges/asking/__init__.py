"""Judges that use models: the models, the calls, and how prompts quote outputs."""
