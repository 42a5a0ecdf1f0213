"""Canaries: detect changes of a served model from its answers to a fixed set of prompts."""
