"""Prefect support: its server, requests to its API, and workarounds."""
