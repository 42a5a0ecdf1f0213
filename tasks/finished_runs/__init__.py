"""Read results of other tools as outputs and scores of candidates on examples.

Each reader reads one format and yields a `ScoredOutput` for each output. `gather` joins the outputs of all
files to one `FinishedRun`, from which a campaign is made. Files are untrusted.
"""
