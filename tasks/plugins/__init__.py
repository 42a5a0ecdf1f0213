"""Code of others: how it is found, called and told apart from another version of itself."""
