"""Certify campaigns: their requirements on the dataset, human labels and the autoevaluator."""
