"""Running one campaign."""
