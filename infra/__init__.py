"""What surrounds Winnow: demo models and data, deployment files and locked requirements."""
