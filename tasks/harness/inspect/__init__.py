"""Tasks of Inspect, which run in a separate process; only that process imports Inspect."""
