"""Code that runs inside the sandbox; imports only the standard library and this package."""
