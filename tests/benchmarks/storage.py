"""`make bench-storage`: millions of comparisons in SQLite and PostgreSQL, how fast they are stored and read.

python -m tests.benchmarks.storage --out .winnow/bench --comparisons 10000000
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sqlalchemy import text

from tests.benchmarks.large_databases import in_its_own_process, measure, opened, place, row
from tests.benchmarks.storage_filling import (
    CANDIDATES,
    CANDIDATES_PER_PROMPT,
    PROMPT,
    TEXT,
    fill,
    prepared,
)
from tests.benchmarks.tables import Row
from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector
from winnow.storage.admin import maintenance
from winnow.storage.engine.database import Database
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewComparison, NewDecision, NewGeneration
from winnow.tasks.campaign.lease import now

TITLE = "Comparisons with their generations and prompts, 200 candidates"
INSERTED = 61_440
"""Comparisons that are stored round by round, as a campaign stores them."""


def main() -> None:
    measure("storage", __doc__.splitlines()[0], TITLE, _measured)


def _measured(kind: str, folder: Path, comparisons: int) -> Iterator[Row]:
    with place(kind, folder) as new_url:
        for size in (64, 1024):
            yield row(kind, f"stored per second, rounds of {size}", *_insert_rate(new_url(), size))
        url = new_url()
        with opened(url) as database:
            start = time.perf_counter()
            campaign = fill(database, comparisons)
            filled = time.perf_counter() - start
            with database.reading() as session:
                each = maintenance.size_in_bytes(session) / comparisons
        yield row(kind, f"bytes per comparison, of {comparisons:,}", f"{each:.0f}", "stated")
        yield row(kind, "filled in bulk within", f"{filled:.0f} s", "none")
        for what, ask, target in QUESTIONS:
            seconds, peak = in_its_own_process(ask, url, campaign)
            yield row(kind, what, f"{seconds:.3f} s, {peak:.0f} MiB at most", target)
        for size in (64, 1024):
            rate, target = _insert_rate(url, size, f"more in rounds of {size}")
            yield row(kind, f"stored per second beside the others, rounds of {size}", rate, target)


def _insert_rate(url: str, size: int, name: str = "bench") -> tuple[str, str]:
    """Comparisons with their generations per second, in the three transactions of each real round."""
    with opened(url) as database:
        campaign = prepared(database, INSERTED // CANDIDATES + 1, name)
        rounds = [_made_up(name, start, size) for start in range(0, INSERTED, size)]
        with database.reading() as session:
            candidates = campaign_records.candidate_ids(session, campaign)
            examples = dataset_records.example_ids(
                session, campaign_records.get_campaign(session, name).dataset_id
            )
        start = time.perf_counter()
        for number, (arms, positions, made) in enumerate(rounds):
            with database.writing() as session:
                round_ = round_records.add_round(
                    session, campaign, number=number, arms=arms, examples=positions, now=now()
                )
            with database.writing() as session:
                texts = generation_records.add_generations(session, round_.id, made, now())
            scored = [
                NewComparison(
                    position=position,
                    candidate_a_id=candidates[arms[position]],
                    example_id=examples[positions[position]],
                    generation_a_id=texts[generation.key].id,
                    judge="exact:0123456789ab",
                    answer="forty-two",
                    outcome=position % 3 / 2,
                )
                for position, generation in enumerate(made)
            ]
            with database.writing() as session:
                outcome_records.add_outcomes(session, round_.id, scored, _decision(candidates[0]), now())
        return f"{INSERTED / (time.perf_counter() - start):,.0f}", "at least 20,000"


def _made_up(name: str, start: int, size: int) -> tuple[list[int], list[int], list[NewGeneration]]:
    pairs = range(start, min(start + size, INSERTED))
    arms, examples = [i % CANDIDATES for i in pairs], [i // CANDIDATES for i in pairs]
    rng = np.random.default_rng([len(name), start])
    made = [
        NewGeneration(
            key=rng.bytes(32).hex(),
            model="model",
            prompt=f"{name}: " + PROMPT.replace("%", str(i // CANDIDATES_PER_PROMPT)),
            seed=0,
            replicate=0,
            text=TEXT.replace("%", str(i)),
            finish_reason="stop",
            input_tokens=20,
            output_tokens=10,
            seconds=0.01,
            engine="vllm 0.32.0 cpu float32",
        )
        for i in pairs
    ]
    return arms, examples, made


def _decision(best: int) -> NewDecision:
    values = [number / CANDIDATES for number in range(CANDIDATES)]
    return NewDecision(
        best_candidate_id=best,
        estimates=values,
        lower=values,
        upper=values,
        status=["active"] * CANDIDATES,
        claim={"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "refuted": []},
        stop=False,
        reason="running",
    )


def _leaderboard(database: Database, campaign: int) -> float:
    return _timed(database, lambda session: campaign_views.leaderboard(session, campaign), CANDIDATES)


def _leaderboard_in_sql(database: Database, _: int) -> float:
    query = text("SELECT * FROM v_leaderboard WHERE campaign = 'bench'")
    return _timed(database, lambda session: session.execute(query), CANDIDATES)


def _curve(database: Database, campaign: int) -> float:
    return _timed(database, lambda session: campaign_views.curve(session, campaign), 1)


def _totals(database: Database, campaign: int) -> float:
    return _timed(database, lambda session: campaign_views.totals(session, campaign), 1)


def _one_comparison(database: Database, _: int) -> float:
    """The slowest of twenty, from all over the campaign, each with its prompt and text."""
    query = text(
        "SELECT prompt, text FROM v_comparisons WHERE campaign = 'bench' AND round = :round AND position = 7"
    )
    with database.reading() as session:
        rounds = round_records.next_round_number(session, 1)
        slowest = 0.0
        for number in np.linspace(0, rounds - 1, 20, dtype=int).tolist():
            start = time.perf_counter()
            assert len(session.execute(query, {"round": number}).all()) == 1
            slowest = max(slowest, time.perf_counter() - start)
    return slowest


def _resumed(database: Database, campaign: int) -> float:
    """Tell a new selector all stored rounds, as `winnow resume` does."""
    start = time.perf_counter()
    with database.reading() as session:
        record = campaign_records.get_campaign(session, "bench")
        n_examples = len(dataset_records.example_ids(session, record.dataset_id))
        selector = create_selector("row-mean", n_arms=CANDIDATES, n_examples=n_examples)
        for each in round_records.told_rounds(session, campaign):
            outcomes = np.array([np.nan if score is None else score for score in each.outcomes])
            selector.tell(Batch(np.array(each.arms), np.array(each.examples)), outcomes)
    return time.perf_counter() - start


def _timed(database: Database, ask: Callable[..., object], at_least: int) -> float:
    with database.reading() as session:
        session.execute(text("SELECT 1"))
        start = time.perf_counter()
        assert len(list(ask(session))) >= at_least  # type: ignore[call-overload]
        return time.perf_counter() - start


QUESTIONS = (
    ("leaderboard", _leaderboard, "under 1 s"),
    ("leaderboard, as the view v_leaderboard", _leaderboard_in_sql, "under 1 s"),
    ("curve", _curve, "under 1 s"),
    ("totals, as `winnow status` asks", _totals, "none"),
    ("one comparison with its texts, the slowest of 20", _one_comparison, "under 0.02 s"),
    ("resume: a new selector is told all rounds", _resumed, "under 60 s, 2,048 MiB"),
)


if __name__ == "__main__":
    main()
