"""Language models behind one narrow protocol: requests in, answers out in the same order, a seed for each."""
