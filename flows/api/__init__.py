"""What a notebook uses."""
