"""Third-party code: finding it, calling it, and identifying its version."""
