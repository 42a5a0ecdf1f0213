"""The answer of a campaign: one data model of its results, and the sentences derived from it."""
