"""From a file to a campaign in the database: loaded, checked, stored."""
