"""Export campaigns as runs of experiment trackers (MLflow, Weights & Biases)."""
