"""Policies, which choose the arm that a prompt is given to."""
