"""What all agents share: keys of the campaign's file, seats, attempts, and how replies are read."""
