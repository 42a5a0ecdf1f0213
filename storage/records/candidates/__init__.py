"""What is kept of each candidate as rounds are told: counts that grow, and what is known of it."""
