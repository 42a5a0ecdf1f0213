"""Run programs written by models against tests, in a sandbox."""
