"""Records of each candidate that are kept as rounds are told: counts that grow, and what is known of it."""
