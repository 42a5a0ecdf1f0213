"""Certify campaigns: checks, human labels, losses, evidence and certificates."""
