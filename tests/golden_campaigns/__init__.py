"""Golden campaigns: scripted campaigns of every objective, and a dump of what they store, show and return.

`python -m tests.golden_campaigns` writes the dumps anew, and `tests/flows/test_golden_campaigns.py` compares.
A change that keeps behaviour leaves every file of `facts/` as it is, byte for byte; `streaming-off.txt` has
the lines that differ without streaming. A change of wording changes `wording.json` and nothing else. The
first part of that file maps each label of an answer's lines, as the facts have it, to the label that is shown
now; it is edited by hand when a label is renamed.

Campaigns run through public doors only: the command `winnow`, `winnow.select`, a campaign's file, engines and
embedders named by `winnow.engine` and `winnow.embedder`. Nothing here imports what a refactoring moves.
What the dumps leave out is listed in `masks.py`. That list does not grow.
"""
