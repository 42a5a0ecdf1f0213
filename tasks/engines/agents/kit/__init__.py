"""Parts shared by all agents: keys of the campaign's file, threads, attempts, and replies."""
