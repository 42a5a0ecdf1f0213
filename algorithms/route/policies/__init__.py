"""Which arm a prompt is given to."""
