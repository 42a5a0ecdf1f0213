"""Confidence sequences, intervals and tests."""
