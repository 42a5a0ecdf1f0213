"""The objectives of campaigns, one package each: checks, steps and results."""
