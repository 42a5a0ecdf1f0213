"""Child processes: starting them, exchanging messages with them, ending them."""
