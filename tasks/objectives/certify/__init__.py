"""Campaigns that certify: what they ask of a dataset, of humans and of an autoevaluator."""
