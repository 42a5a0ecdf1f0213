"""Per-candidate records updated with each observed round: counts, and values of decisions."""
