"""From a file to a campaign in the database: loading, checking, storing."""
