"""The sections of a campaign's file, one thing that users describe each."""
