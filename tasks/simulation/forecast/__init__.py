"""Forecast of a campaign's cost before anything is spent: `winnow plan`."""
