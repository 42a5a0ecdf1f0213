"""The objectives of campaigns, each with its own checks, judging and reports."""
