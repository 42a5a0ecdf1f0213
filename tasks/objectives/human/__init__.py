"""Campaigns in which people judge: what a round asks of them, and how their answers are taken."""
