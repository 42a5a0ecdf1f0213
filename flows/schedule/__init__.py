"""Run campaigns on a schedule, from a terminal or by workers of a Prefect work pool."""
