"""Run one campaign: checks, permissions, the run itself, and its progress and log."""
