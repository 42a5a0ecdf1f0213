"""Judges that use models: their models, their prompts, and how outputs are quoted in them."""
