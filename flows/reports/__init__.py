"""Results as text, pages, files and metrics."""
