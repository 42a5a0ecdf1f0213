"""`make bench-view`: how long the pages take on a campaign of millions of comparisons.

python -m tests.benchmarks.view --out .winnow/bench --comparisons 10000000
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from tests.benchmarks.large_databases import in_its_own_process, measure, opened, place, row
from tests.benchmarks.storage_filling import fill
from tests.benchmarks.tables import Row
from winnow.flows.reports.dashboard import STORAGE_VARIABLE
from winnow.storage.engine.database import Database
from winnow.storage.queries import browse
from winnow.storage.queries.browse import Filters
from winnow.storage.queries.objective.duels import head_to_head
from winnow.storage.records.text_index import build

TITLE = "Pages of one campaign of best-mean with 200 candidates"

EVERYBODY_MET = """
    INSERT INTO duel_stats
    SELECT a.id, b.id, 500, 490, 240, 200, 265.0 FROM candidates a JOIN candidates b ON a.id < b.id
"""
"""As ten million duels of 200 candidates would leave it."""


IT_ENDED = """
    UPDATE decisions SET stop = true, reason = 'confident',
        claim = '{"kind": "heuristic", "delta": null, "raised_by": [], "assumptions": [], "refuted": []}'
    WHERE round_id = (SELECT max(round_id) FROM decisions)
"""
"""The two best candidates are then compared on all examples."""


def main() -> None:
    measure("view", __doc__.splitlines()[0], TITLE, _measured)


def _measured(kind: str, folder: Path, comparisons: int) -> Iterator[Row]:
    with place(kind, folder) as new_url:
        url = new_url()
        with opened(url) as database:
            start = time.perf_counter()
            campaign = fill(database, comparisons)
            yield row(
                kind, f"{comparisons:,} comparisons, filled", f"{time.perf_counter() - start:.0f} s", ""
            )
            with database.writing() as session:
                session.execute(text(EVERYBODY_MET))
            start = time.perf_counter()
            build(database)
            yield row(kind, "winnow db index", f"{time.perf_counter() - start:.0f} s", "")
        os.environ[STORAGE_VARIABLE] = url
        for what, ask, target in QUESTIONS:
            seconds, _ = in_its_own_process(ask, url, campaign)
            yield row(kind, what, f"{seconds:.3f} s", target)
        with opened(url) as database, database.writing() as session:
            session.execute(text(IT_ENDED))
        seconds, _ = in_its_own_process(_first_look, url, campaign)
        yield row(kind, "the page of an ended campaign is opened", f"{seconds:.3f} s", "under 1 s")


def _looks(number: int) -> float:
    """Seconds of one of the page's looks: the first one, one after a round, and one with nothing new."""
    from winnow.flows.reports.dashboard.screens.campaign_page import look_at

    last, taken = None, []
    for rounds_since in (0, 1, 0):
        if last is not None:
            last = replace(last, version=replace(last.version, rounds=last.version.rounds - rounds_since))
        start = time.perf_counter()
        last = look_at("bench", last)
        taken.append(time.perf_counter() - start)
    return taken[number]


def _first_look(_: Database, __: int) -> float:
    return _looks(0)


def _look_after_a_round(_: Database, __: int) -> float:
    return _looks(1)


def _idle_look(_: Database, __: int) -> float:
    return _looks(2)


class _Browse:
    """A page of the browser of comparisons."""

    def __init__(self, filters: Filters) -> None:
        self._filters = filters

    def __call__(self, database: Database, campaign: int) -> float:
        with database.reading() as session:
            start = time.perf_counter()
            browse.comparisons(session, campaign, self._filters, before=None, most=51, characters=200)
            return time.perf_counter() - start


class _View:
    """All rows of a view."""

    def __init__(self, name: str) -> None:
        self._query = f"SELECT * FROM {name} WHERE campaign = 'bench'"

    def __call__(self, database: Database, _: int) -> float:
        with database.reading() as session:
            start = time.perf_counter()
            session.execute(text(self._query)).all()
            return time.perf_counter() - start


def _head_to_head(database: Database, campaign: int) -> float:
    with database.reading() as session:
        start = time.perf_counter()
        head_to_head(session, campaign)
        return time.perf_counter() - start


QUESTIONS: tuple[tuple[str, Callable[[Database, int], float], str], ...] = (
    ("a campaign's page is opened", _first_look, "under 1 s"),
    ("the page looks again after a round", _look_after_a_round, "under 0.3 s"),
    ("the page looks again, nothing new", _idle_look, "under 0.3 s"),
    ("newest comparisons", _Browse(Filters()), "under 1 s"),
    ("of one candidate", _Browse(Filters(candidate="c7")), "under 1 s"),
    ("search: a common word", _Browse(Filters(words="forty-two")), "under 2 s"),
    ("search: one text", _Browse(Filters(words="to question 123456 is")), "under 2 s"),
    ("search: no text", _Browse(Filters(words="no such words anywhere")), "under 2 s"),
    ("v_costs", _View("v_costs"), "under 1 s"),
    ("v_reuse", _View("v_reuse"), "under 1 s"),
    ("v_head_to_head", _View("v_head_to_head"), "under 1 s"),
    ("head to head", _head_to_head, "under 1 s"),
)


if __name__ == "__main__":
    main()
