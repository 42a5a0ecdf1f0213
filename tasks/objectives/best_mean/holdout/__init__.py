"""Examples that selection never sees; the winner and the runner-up are scored on them at the end."""
