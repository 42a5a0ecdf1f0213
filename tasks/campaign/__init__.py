"""A campaign while it runs: its session, lease and budget, and reuse of outputs."""
