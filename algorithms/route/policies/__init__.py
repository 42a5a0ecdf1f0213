"""Policies, which choose the arm for a prompt."""
