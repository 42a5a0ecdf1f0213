"""The demo's campaigns, one module per objective."""
