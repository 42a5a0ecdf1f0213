"""Forecast a campaign's cost before anything is spent, for `winnow plan`."""
