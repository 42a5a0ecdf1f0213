"""A campaign while it runs: its session, lease, budget and reuse."""
