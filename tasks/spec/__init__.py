"""The keys of a campaign's file, and the values that are read from one."""
