"""What is believed of each arm's score, given a prompt."""
