"""Programs that models write, run against tests in a sandbox."""
