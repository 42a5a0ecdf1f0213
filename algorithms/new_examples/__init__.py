"""Tests of two arms on new examples, of which the benchmark's are a random sample."""
