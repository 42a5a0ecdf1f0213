"""Print a campaign's report in a terminal: the answer, the objective's sections, and the coverage."""

import sys
from collections.abc import Callable, Iterable

from sqlalchemy.orm import Session

from winnow.algorithms.state.plugin_registry import object_at
from winnow.flows.reports.output import terminal_width
from winnow.flows.reports.rows.text_table import unfolded
from winnow.flows.reports.rows.writer import print_rows
from winnow.flows.reports.summary import print_summary
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import campaign_views
from winnow.tasks.answer.sentences.clauses import out_since
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.held_out import scored_words
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.queries.warnings.from_outputs import coverage

TerminalSection = tuple[str, Callable[[Look], Iterable[Row]]]
"""A title, and a function that returns the rows of the table below the title."""


def by_id(
    view: Callable[[Session, int], Iterable[Row]],
) -> Callable[[Look], Iterable[Row]]:
    """Adapt a view of storage, which takes a session and a campaign's id, to take a `Look`."""
    return lambda look: view(look.session, look.record.id)


def _leaderboard(look: Look) -> list[Row]:
    """The leaderboard; scores on held-out examples, which estimates exclude, are counted separately."""
    rows = list(ask(look, "leaderboard"))
    if not any(row.get("held_out") for row in rows):
        return rows
    return [
        {name: scored_words(row) if name == "scored" else row[name] for name in row if name != "held_out"}
        for row in rows
    ]


def _eliminations(look: Look) -> list[Row]:
    """Rows of eliminations; the last two columns are replaced by the clause that the page shows."""
    return [
        {
            **{name: row[name] for name in ("candidate", "status", "wealth", "level")},
            "since": out_since(row) or None,
        }
        for row in campaign_views.eliminations(look.session, look.record.id)
    ]


LEADERBOARD: TerminalSection = ("Leaderboard", _leaderboard)
ELIMINATIONS: TerminalSection = (
    "Eliminations: evidence against each candidate (starts at 1), and when it reached the level",
    _eliminations,
)
COVERAGE: TerminalSection = ("Coverage: comparisons by candidate and reason", coverage)


def print_report(look: Look, storage: str) -> None:
    """Print the answer, and all sections that are not empty."""
    print_summary(campaign_status(look, in_full=True), storage)
    own = object_at(traits_of(look.record.objective).terminal)(look.record)
    for title, view in (*own, COVERAGE):
        if rows := list(view(look)):
            print("", *unfolded(title, terminal_width(sys.stdout)), sep="\n")
            print_rows(rows, "table")
