"""Examples that selection never sees, on which the winner and the runner-up are scored once it has ended."""
