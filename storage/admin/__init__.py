"""Schema upgrades, and operations on a whole database."""
