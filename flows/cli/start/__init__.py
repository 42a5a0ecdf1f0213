"""Commands for newcomers."""
