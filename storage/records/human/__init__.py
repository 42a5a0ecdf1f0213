"""People's labels of examples, and their judgments of outputs and of pairs."""
