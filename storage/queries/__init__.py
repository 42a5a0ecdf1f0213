"""Questions to the database, and its views."""
