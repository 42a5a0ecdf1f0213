"""A campaign's report for a terminal: the answer, win rates, the judges' behaviour, and missing outcomes."""

import sys
from collections.abc import Callable, Iterable

from sqlalchemy.orm import Session

from winnow.flows.reports.output import terminal_width
from winnow.flows.reports.rows.text_table import unfolded
from winnow.flows.reports.rows.writer import print_rows
from winnow.flows.reports.summary import print_summary
from winnow.storage.json_types import Row
from winnow.storage.queries import campaign_views
from winnow.storage.queries.objective import certify as certify_views
from winnow.storage.queries.objective import duels as duel_views
from winnow.storage.records.values import CampaignRecord
from winnow.tasks.answer.sentences.clauses import out_since
from winnow.tasks.objectives.best_duel.strengths import strengths
from winnow.tasks.objectives.certify import evidence
from winnow.tasks.objectives.certify.certificate import losses_of
from winnow.tasks.objectives.route import status as standing
from winnow.tasks.queries.breakdowns import tags
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.queries.warnings.from_outputs import coverage
from winnow.tasks.spec.selector_traits import TRUSTS_A_MEAN
from winnow.tasks.spec.stored_spec import grouping_of

Section = tuple[str, Callable[[Session, CampaignRecord], Iterable[Row]]]


def print_report(session: Session, campaign: CampaignRecord, storage: str) -> None:
    """Print all sections that have something to show."""
    print_summary(campaign_status(session, campaign, in_full=True), storage)
    for title, view in (*SECTIONS[campaign.objective](campaign), COVERAGE):
        if rows := list(view(session, campaign)):
            print("", *unfolded(title, terminal_width(sys.stdout)), sep="\n")
            print_rows(rows, "table")


def _of_scores(campaign: CampaignRecord) -> tuple[Section, ...]:
    groups = grouping_of(campaign.spec)
    if groups is None:
        return (LEADERBOARD, ELIMINATIONS)
    title = f"Leaderboard: what is estimated is the {groups.value}, by {groups.by}"
    by_group = f"Means by {groups.by}, plain intervals at 95%, not certified"
    return ((title, LEADERBOARD[1]), ELIMINATIONS, (by_group, tags))


def _of_duels(campaign: CampaignRecord) -> tuple[Section, ...]:
    return (
        LEADERBOARD,
        ("Head to head: win rate of the row (scored duels)", _matrix),
        ("Strengths: log-odds of beating the average candidate, 95% intervals for one look", strengths),
        (
            "Judges: preference for the answer shown first, and how often the order decided",
            _by_id(duel_views.judges),
        ),
        ("Verdicts", _by_id(duel_views.verdicts)),
    )


def _of_certificates(campaign: CampaignRecord) -> tuple[Section, ...]:
    baseline = campaign.spec["certify"]["baseline"]
    risks: Section = (
        f"Risks: {losses_of(campaign.spec['selector']['name'], baseline)}, least first, and intervals",
        _by_id(certify_views.leaderboard),
    )
    if campaign.spec["selector"]["name"] in TRUSTS_A_MEAN:
        return (risks,)
    delta = campaign.spec["stopping"]["delta"]
    return (
        ("Certificates in testing order, dearest first", evidence.standings),
        risks,
        (
            f"E-values against labels; the line to reach once is 1/delta = {1 / delta:g}, "
            "times the number of candidates with procedure bonferroni",
            evidence.paths,
        ),
        ("Weights over rho, how far the autoevaluator is relied on", evidence.weight_table),
    )


def _of_routes(campaign: CampaignRecord) -> tuple[Section, ...]:
    return (
        (
            "Leaderboard: means of the prompts that each candidate was given",
            _by_id(campaign_views.leaderboard),
        ),
        ("Shares of the last prompts, by type", standing.shares),
    )


def _by_id(
    view: Callable[[Session, int], Iterable[Row]],
) -> Callable[[Session, CampaignRecord], Iterable[Row]]:
    """A view of storage, which knows campaigns by their ids."""
    return lambda session, campaign: view(session, campaign.id)


def _leaderboard(session: Session, campaign: CampaignRecord) -> list[Row]:
    """The leaderboard, with scores on held-out examples, which the estimates leave out, counted apart."""
    rows = list(ask(session, campaign, "leaderboard"))
    if not any(row.get("held_out") for row in rows):
        return rows
    return [
        {name: scored_words(row) if name == "scored" else row[name] for name in row if name != "held_out"}
        for row in rows
    ]


def _eliminations(session: Session, campaign: CampaignRecord) -> list[Row]:
    """The view with the page's sentence, which counts rounds from 1, in the place of its last two columns."""
    return [
        {
            **{name: row[name] for name in ("candidate", "status", "wealth", "level")},
            "since": out_since(row["status"], row["out_in_round"], row["out_at"]) or None,
        }
        for row in campaign_views.eliminations(session, campaign.id)
    ]


def _matrix(session: Session, campaign: CampaignRecord) -> list[Row]:
    """The win rates of duels as a table: a numbered column for each candidate, the best ones first."""
    cells = {
        (row["candidate"], row["opponent"]): f"{row['win_rate']:.2f} ({row['duels'] - row['unscored']})"
        for row in duel_views.head_to_head(session, campaign.id)
        if row["win_rate"] is not None
    }
    names = [row["candidate"] for row in campaign_views.leaderboard(session, campaign.id)]
    return [
        {
            "": number,
            "candidate": name,
            **{str(column): cells.get((name, other), "") for column, other in enumerate(names, 1)},
        }
        for number, name in enumerate(names, 1)
    ]


LEADERBOARD: Section = ("Leaderboard", _leaderboard)
ELIMINATIONS: Section = (
    "Who is out: what bets against each candidate made of 1, and when that reached the level",
    _eliminations,
)
COVERAGE: Section = ("Coverage: comparisons by candidate and reason", coverage)

SECTIONS: dict[str, Callable[[CampaignRecord], tuple[Section, ...]]] = {
    "best-mean": _of_scores,
    "best-duel": _of_duels,
    "certify": _of_certificates,
    "route": _of_routes,
}
"""The sections between the answer and the coverage, by objective."""
