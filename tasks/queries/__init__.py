"""What can be asked of campaigns in the database."""
