"""Reports of campaigns: text in a terminal, HTML pages, files, metrics and the dashboard."""
