"""Forecast of the cost of a campaign, worked out before anything is spent: `winnow plan`."""
