"""Reading and writing of rows, one kind per file."""
