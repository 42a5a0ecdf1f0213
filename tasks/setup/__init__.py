"""Setup of a campaign in the database from its file: loading, checking, storing."""
