"""Commands that a newcomer begins with."""
