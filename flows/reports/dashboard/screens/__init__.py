"""The pages of the dashboard, one module with a function `show` each, and their common parts."""
