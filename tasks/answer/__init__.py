"""The answer of a campaign: its data model, and the sentences derived from it."""
