"""Tasks of Inspect, which run in a process of their own; Inspect itself is imported there alone."""
