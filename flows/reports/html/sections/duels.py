"""Sections of duels: who beats whom, strengths on one scale, and how the judges behaved."""

from sqlalchemy.orm import Session

from winnow.flows.reports.html.figures.duels import head_to_head as head_to_head_figure
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.model import SpecModel, first_of
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.queries.views import ask


def head_to_head(session: Session, campaign: CampaignRecord) -> SpecModel | None:
    """Win rates of all pairs that met."""
    met = list(ask(session, campaign, "head-to-head"))
    if not met:
        return None
    board, cut = first_of(list(ask(session, campaign, "leaderboard")), "head-to-head")
    return SpecModel(
        name="head-to-head",
        title="Head to head",
        note=f"How often the row was preferred to the column; a tie is half a win. Best first.{cut}",
        figure=head_to_head_figure(met, [row["candidate"] for row in board]),
    )


def strengths(session: Session, campaign: CampaignRecord) -> SpecModel | None:
    """Bradley-Terry strengths."""
    known = [row for row in ask(session, campaign, "strengths") if row["strength"] is not None]
    if not known:
        return None
    rows, cut = first_of(known, "strengths")
    return SpecModel(
        name="strengths",
        title="Strengths",
        note=f"In a Bradley-Terry model, with 95% intervals for one look; they decide nothing.{cut}",
        figure=intervals(
            rows,
            title="log-odds of beating the average candidate",
            value="strength",
            line=0.0,
            line_as="average",
        ),
    )


def judges(session: Session, campaign: CampaignRecord) -> SpecModel | None:
    """How the models that judge treated places."""
    rows = list(ask(session, campaign, "judges"))
    if not rows:
        return None
    return SpecModel(
        name="judges",
        title="Judges",
        note="First wins: mean preference for the answer shown first, 0.5 without a preference for places. "
        "Flip rate: share of the questions asked in both orders whose two verdicts contradict each other.",
        table=rows,
    )
