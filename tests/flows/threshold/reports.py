"""The sections of threshold's reports."""

from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.terminal.sections import LEADERBOARD

SAMPLES = {"good": "Highest scores", "bad": "Lowest scores"}
MEASURED = "the outputs that were generated"


def sections_of(campaign):
    """Sections in a terminal."""
    return (LEADERBOARD,)


def builders_of(campaign, read):
    """Sections of the page."""
    return standard.estimates("Means and the threshold", "mean score"), standard.allocation("comparisons")
