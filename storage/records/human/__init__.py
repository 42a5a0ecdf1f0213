"""Human labels of examples, and annotations of outputs and pairs."""
