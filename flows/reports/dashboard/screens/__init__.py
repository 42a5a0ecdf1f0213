"""The pages of the dashboard, and what they have in common."""
