"""The five steps of a round."""
