"""Child processes: starting, messages and ending."""
