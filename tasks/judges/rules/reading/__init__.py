"""What an output says: its answer, its choice, its number."""
