"""Keys of a campaign's file, and the values read from one."""
