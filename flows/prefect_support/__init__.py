"""What surrounds Prefect: its server, its crashed runs, its automations."""
