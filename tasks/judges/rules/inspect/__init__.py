"""Rule-based scorers of Inspect 0.3.285; Inspect itself is not imported."""
