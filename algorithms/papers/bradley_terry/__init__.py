"""Duels under the Bradley-Terry model."""
