"""The surroundings of Winnow: demo models and data, deployment files and locked requirements."""
