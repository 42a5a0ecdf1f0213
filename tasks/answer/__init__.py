"""The answer of a campaign: one model of what is known, and the sentences that may be said of it."""
