"""Sections of the page of a best-duel campaign."""

from winnow.flows.reports.html.figures.duels import head_to_head as head_to_head_figure
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, ReadOnce
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.views import ask

SAMPLES = {"good": "Won", "bad": "Lost", "even": "Tied"}
"""Headings of the sample comparisons, by kind."""


def builders_of(campaign: CampaignRecord, read: ReadOnce) -> tuple[Builder, ...]:
    """Sections of the page, between the answer and those that every page has."""
    return (
        standard.estimates("Estimates", "win rate against its strongest opponent"),
        head_to_head,
        strengths,
        judges,
        standard.curve("win rate", "duels", read.points),
        standard.allocation("duels"),
    )


def head_to_head(look: Look) -> Section | None:
    """Win rates of all pairs of candidates that were compared."""
    met = [row for row in ask(look, "head-to-head") if row["win_rate"] is not None]
    if not met:
        return None
    board, cut = first_of(list(ask(look, "leaderboard")), look.record.name, "head-to-head")
    return Section(
        name="head-to-head",
        title="Head to head",
        note=(
            "Share of duels in which the row was preferred to the column; a tie is half a win. Best "
            f"first.{cut}"
        ),
        figure=head_to_head_figure(met, [row["candidate"] for row in board]),
    )


def strengths(look: Look) -> Section | None:
    """Bradley-Terry strengths."""
    known = [row for row in ask(look, "strengths") if row["strength"] is not None]
    if not known:
        return None
    rows, cut = first_of(known, look.record.name, "strengths")
    return Section(
        name="strengths",
        title="Strengths",
        note=(
            "Bradley-Terry strengths with 95% intervals, valid at a single look; not used for "
            f"decisions.{cut}"
        ),
        figure=intervals(
            rows,
            title="log-odds of beating the average candidate",
            value="strength",
            line=0.0,
            line_as="average",
        ),
    )


def judges(look: Look) -> Section | None:
    """The section on how position affects the judge models' preferences."""
    rows = list(ask(look, "judges"))
    if not rows:
        return None
    return Section(
        name="judges",
        title="Judges",
        note="First wins: mean preference for the answer shown first, 0.5 without position bias. Flip "
        "rate: share of the pairs judged in both orders whose two verdicts differ: different answers "
        "are preferred, or one verdict is a tie.",
        table=rows,
    )
