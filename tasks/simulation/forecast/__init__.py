"""What a campaign would take, worked out before anything is spent: `winnow plan`."""
