"""Child processes: how they are started, talked to and ended."""
