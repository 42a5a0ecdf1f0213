"""What surrounds Winnow's code: demo models and data, deployment files and locked requirements."""
