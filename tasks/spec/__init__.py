"""Keys of a campaign's file, with their types, defaults and validation."""
