"""Vectors of prompts, with length 1, so that a router can generalise to similar prompts."""
