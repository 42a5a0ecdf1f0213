"""Check that stored campaigns refer to the correct outputs and judges."""
