"""Code around Prefect: its server, its crashed runs, its automations."""
