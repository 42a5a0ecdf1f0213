"""Third-party code: find it, call it, identify its version, and check permissions."""
