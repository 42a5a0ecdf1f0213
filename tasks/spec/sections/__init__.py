"""The sections of a campaign's file, one concept each."""
