"""Set up a campaign in the database from its file: load, check and store it."""
