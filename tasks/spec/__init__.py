"""What a campaign's file may say, and what is read from one."""
