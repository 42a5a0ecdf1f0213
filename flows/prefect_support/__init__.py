"""Support for Prefect: its server, requests to its API, its environment, and workarounds."""
