"""The scorers of Inspect 0.3.285 that follow a rule; Inspect itself is not imported."""
