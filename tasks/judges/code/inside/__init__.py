"""What runs within the sandbox: the standard library, and nothing else of this package."""
