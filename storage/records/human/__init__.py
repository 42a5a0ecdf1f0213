"""What people say: the labels of examples, and their judgments of outputs and of pairs."""
