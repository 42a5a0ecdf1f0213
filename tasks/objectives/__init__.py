"""The questions a campaign can ask, each with its own way of checking, judging and telling."""
