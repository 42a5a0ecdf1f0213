"""Language models behind one narrow protocol: requests in, answers out, in order, each with its own seed."""
