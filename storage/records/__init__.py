"""Reading and writing of rows; each kind of row has its own file."""
