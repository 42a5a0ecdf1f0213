"""Evidence from counts of duels, without a model."""
