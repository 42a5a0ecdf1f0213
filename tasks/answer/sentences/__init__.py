"""What is said of an answer, in sentences."""
