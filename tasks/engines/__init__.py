"""Engines that generate or score texts with language models, behind one protocol.

Each request has its own seed, and answer i belongs to request i.
"""
