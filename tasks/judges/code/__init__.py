"""Run programs that models write against tests, in a sandbox."""
