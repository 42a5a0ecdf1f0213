"""A campaign's report for a terminal: the answer, who beats whom, how the judges behaved, what is missing."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy.orm import Session

from flows.output import print_rows
from flows.summary import print_summary
from storage import certify_views, duel_views, views
from storage.records import CampaignRecord
from tasks.certifying.certificate import UNRELIABLE
from tasks.status import campaign_status
from tasks.strengths import strengths

Row = dict[str, Any]
Section = tuple[str, Callable[[Session, int], Iterable[Row]]]


def print_report(session: Session, campaign: CampaignRecord, storage: str) -> None:
    """Print all sections that have something to show."""
    print_summary(campaign_status(session, campaign), storage)
    middle = OF_DUELS if campaign.objective == "best-duel" else ()
    sections = (*OF_ALL, *middle, *AT_THE_END)
    if campaign.objective == "certify":
        sections = (*_of_certificates(campaign), *AT_THE_END)
    for title, view in sections:
        if rows := list(view(session, campaign.id)):
            print(f"\n{title}")
            print_rows(rows, "table")


def _of_certificates(campaign: CampaignRecord) -> tuple[Section, ...]:
    from tasks.certifying import evidence

    def of(view: Callable[[Session, CampaignRecord], list[Row]]) -> Callable[[Session, int], list[Row]]:
        return lambda session, _: view(session, campaign)

    risks = ("Risks: mean loss against human labels, least first, and intervals", certify_views.leaderboard)
    if campaign.spec["selector"]["name"] in UNRELIABLE:
        return (risks,)
    delta = campaign.spec["stopping"]["delta"]
    return (
        ("Certificates in testing order, dearest first", of(evidence.standings)),
        risks,
        (
            f"E-values against labels; the line to reach once is 1/delta = {1 / delta:g}, "
            "times the number of candidates with procedure bonferroni",
            of(evidence.paths),
        ),
        ("Weights over rho, how far the autoevaluator is relied on", of(evidence.weight_table)),
    )


def _matrix(session: Session, campaign_id: int) -> list[Row]:
    """Who beats whom as a table: a numbered column for each candidate, the best ones first."""
    cells = {
        (row["candidate"], row["opponent"]): f"{row['win_rate']:.2f} ({row['duels'] - row['unscored']})"
        for row in duel_views.head_to_head(session, campaign_id)
        if row["win_rate"] is not None
    }
    names = [row["candidate"] for row in views.leaderboard(session, campaign_id)]
    return [
        {
            "": number,
            "candidate": name,
            **{str(column): cells.get((name, other), "") for column, other in enumerate(names, 1)},
        }
        for number, name in enumerate(names, 1)
    ]


OF_ALL: tuple[Section, ...] = (("Leaderboard", views.leaderboard),)
OF_DUELS: tuple[Section, ...] = (
    ("Head to head: win rate of the row (scored duels)", _matrix),
    ("Strengths: log-odds of beating the average candidate, 95% intervals for one look", strengths),
    ("Judges: preference for the answer shown first, and how often the order decided", duel_views.judges),
    ("Verdicts", duel_views.verdicts),
)
AT_THE_END: tuple[Section, ...] = (("Coverage: comparisons by candidate and reason", views.coverage),)
