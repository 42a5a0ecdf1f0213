"""The code that runs within the sandbox: it uses the standard library, and nothing else of this package."""
