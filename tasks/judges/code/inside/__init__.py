"""Code that runs inside the sandbox: it imports only the standard library and this package."""
