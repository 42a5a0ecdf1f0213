"""Prefect: its server, requests to its API, and what it would get wrong by itself."""
