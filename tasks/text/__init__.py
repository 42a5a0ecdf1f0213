"""Words, numbers and patterns in text that is shown or read."""
