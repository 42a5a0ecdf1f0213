"""Prefect flows and the command line: a campaign from its spec to a decision."""
