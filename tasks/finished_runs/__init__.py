"""Results of other tools, read as outputs and scores of candidates on examples.

Each reader reads one format. It yields a `ScoredOutput` for each output; `gather` puts those of all files
into one `FinishedRun`, from which a campaign is made. Files are untrusted.
"""
