"""The pages of the dashboard, and their common parts."""
