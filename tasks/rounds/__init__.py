"""Steps of a round: plan, generate, judge, decide and record."""
