"""A campaign of millions of comparisons, made by the database itself: for measuring how it is read."""

import sqlite3
from collections.abc import Iterator

import numpy as np
from sqlalchemy import text

from winnow.storage.admin.maintenance import set_sequences
from winnow.storage.engine.database import Database
from winnow.storage.engine.raw_sql import insert_rows
from winnow.storage.models import CostStats, Decision, Round, Standing, table_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.candidate_states import STATS
from winnow.storage.records.outcomes import TOTALS
from winnow.storage.records.record_types import NewCandidate, NewExample
from winnow.tasks.campaign.lease import now

CANDIDATES = 200
CANDIDATES_PER_PROMPT = 10
"""Candidates that differ only in their model: they share each rendered prompt."""
ROUND = 1024
SUBJECTS = 57
"""Values of the tag of the examples."""

PROMPT = "Question %: what is the answer to life, the universe and everything? Think step by step. Answer: "
TEXT = "The answer to question % is, as everybody knows, forty-two."

ADDED_UP = {
    "candidate_id": "candidate_a_id",
    "reason": "coalesce(reason, '')",
    "comparisons": "count(*)",
    "outcome_sum": "coalesce(sum(outcome), 0)",
    "lowest": "min(outcome)",
    "highest": "max(outcome)",
    "texts": "count(*)",
    "input_tokens": "20 * count(*)",
    "output_tokens": "10 * count(*)",
    "seconds": "0.01 * count(*)",
    "input_squares": "400 * count(*)",
    "output_squares": "100 * count(*)",
    "second_squares": "0.0001 * count(*)",
    "input_by_output": "200 * count(*)",
    "input_by_seconds": "0.2 * count(*)",
    "output_by_seconds": "0.1 * count(*)",
    "detail": "NULL",
}
"""What a candidate's rows come to, all as `_statements` makes them; other stats are 0."""
TALLIES = f"""
    INSERT INTO candidate_stats ({", ".join(STATS)})
    SELECT {", ".join(ADDED_UP.get(name, "0") for name in STATS)}
    FROM comparisons GROUP BY candidate_a_id, coalesce(reason, '')
"""
PAID = {
    "campaign_id": "k.campaign_id",
    "role": "'candidate'",
    "name": "k.name",
    "model": "'model'",
    "generations": "sum(s.texts)",
    "input_tokens": "sum(s.input_tokens)",
    "output_tokens": "sum(s.output_tokens)",
    "seconds": "sum(s.seconds)",
}
COST_COLUMNS = [column.name for column in table_of(CostStats).columns]
COSTS = f"""
    INSERT INTO cost_stats ({", ".join(COST_COLUMNS)})
    SELECT {", ".join(PAID.get(name, "0") for name in COST_COLUMNS)}
    FROM candidate_stats s JOIN candidates k ON k.id = s.candidate_id GROUP BY k.id
"""
TOTALS_OF_ROUNDS = f"INSERT INTO campaign_stats {TOTALS.format(where='1 = 1')}"
SPEC = {
    "stopping": {"delta": 0.05, "epsilon": None},
    "selector": {"name": "row-mean", "params": {}},
    "judge": {"type": "exact"},
    "models": [],
}
"""What a reader of a campaign looks into."""


def prepared(database: Database, n_examples: int, name: str = "bench") -> int:
    """A campaign without rounds; its id."""
    with database.writing() as session:
        rows = [
            NewExample(
                key=str(i), fields={"input": f"question {i}", "subject": f"s{i % SUBJECTS}"}, targets=["1"]
            )
            for i in range(n_examples)
        ]
        dataset = dataset_records.ensure_dataset(
            session, fingerprint=f"{n_examples:064d}", name="bench", path="bench", examples=rows, now=now()
        )
        new = [NewCandidate(name=f"c{i}", model={}, prompt={}, sampling={}) for i in range(CANDIDATES)]
        return campaign_records.add_campaign(
            session,
            name=name,
            objective="best-mean",
            dataset_id=dataset,
            seed=0,
            spec=SPEC,
            execution={"budget": 2 * n_examples * CANDIDATES, "tags": ["subject"]},
            versions={},
            candidates=new,
            now=now(),
        ).id


def fill(database: Database, comparisons: int) -> int:
    """Fill an empty database with one campaign that scored this many pairs; its id."""
    campaign = prepared(database, -(-comparisons // CANDIDATES))
    sizes = [min(ROUND, comparisons - start) for start in range(0, comparisons, ROUND)]
    with database.writing() as session:
        insert_rows(
            session.connection(),
            table_of(Round),
            ("campaign_id", "number", "planned_after", "arms", "examples", "planned_at"),
            _plans(campaign, sizes),
        )
        insert_rows(session.connection(), table_of(Decision), DECISION, _decisions(sizes))
        insert_rows(session.connection(), table_of(Standing), STANDING, _standings(len(sizes)))
    statements = _statements(database, comparisons)
    if database.is_postgresql:
        with database.writing() as session:
            for statement in statements:
                session.execute(text(statement))
            set_sequences(session)
        with database.outside_transactions() as run:
            run("VACUUM ANALYZE")
            run("CHECKPOINT")
    else:
        database.close()
        _fill_file(database.url.removeprefix("sqlite:///"), statements)
    return campaign


def _fill_file(path: str, statements: list[str]) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-1500000"):
        connection.execute(f"PRAGMA {pragma}")
    for statement in ("BEGIN", *statements, "COMMIT"):
        connection.execute(statement)
    connection.close()


DECISION = (
    "round_id", "best_candidate_id", "has_ranking", "has_bets", "changes", "claim", "stop", "reason",
    "decided_at", "best_estimate", "best_lower", "best_upper", "comparisons", "answered", "scored",
    "candidates", "generations", "input_tokens", "output_tokens", "seconds",
)  # fmt: skip

STANDING = ("candidate_id", "round_id", "estimate", "lower", "upper", "status")


NO_CLAIM = {"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "refuted": []}


def _plans(campaign: int, sizes: list[int]) -> Iterator[tuple[object, ...]]:
    for number, size in enumerate(sizes):
        pairs = np.arange(number * ROUND, number * ROUND + size)
        yield campaign, number, number, (pairs % CANDIDATES).tolist(), (pairs // CANDIDATES).tolist(), now()


def _decisions(sizes: list[int]) -> Iterator[tuple[object, ...]]:
    for number, size in enumerate(sizes):
        best = number % CANDIDATES
        lower, estimate, upper = _interval(number, best)
        yield (
            number + 1, best + 1, False, False, CANDIDATES if number == 0 else 1, NO_CLAIM, False, "running",
            now(), estimate, lower, upper, size, size, size - size // 50, min(size, CANDIDATES), size,
            20 * size, 10 * size, 0.01 * size,
        )  # fmt: skip


def _standings(n_rounds: int) -> Iterator[tuple[object, ...]]:
    """The first round has something to say of every candidate, each later one of the best after it."""
    for number in range(n_rounds):
        for candidate in range(CANDIDATES) if number == 0 else (number % CANDIDATES,):
            lower, estimate, upper = _interval(number, candidate)
            yield candidate + 1, number + 1, estimate, lower, upper, "active"


def _interval(number: int, candidate: int) -> list[float]:
    """Lower end, estimate and upper end, made up."""
    return np.sort(np.random.default_rng((number, candidate)).random(3)).tolist()


def _statements(database: Database, comparisons: int) -> list[str]:
    """What makes the prompts, the generations and the comparisons; keys look as random as real ones."""
    if database.is_postgresql:
        numbers = f"generate_series(0, {comparisons - 1}) AS n(i)"
        prompts = f"generate_series(0, {comparisons // CANDIDATES_PER_PROMPT}) AS n(i)"
        key, moment = "encode(sha256(('{}' || i)::bytea), 'hex')", "now()"
    else:
        numbers, prompts = (
            f"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "
            "SELECT i FROM n)"
            for last in (comparisons - 1, comparisons // CANDIDATES_PER_PROMPT)
        )
        key, moment = "lower(hex(randomblob(32)))", "'2026-01-02 03:04:05.000678'"
    prompt, answer = (f"replace('{each}', '%', CAST(i AS TEXT))" for each in (PROMPT, TEXT))
    return [
        f"INSERT INTO prompts (id, digest, text) SELECT i + 1, {key.format('p')}, {prompt} FROM {prompts}",
        "INSERT INTO generations (id, key, round_id, model, prompt_id, seed, replicate, text, finish_reason, "
        "input_tokens, output_tokens, seconds, engine, created_at) "
        f"SELECT i + 1, {key.format('g')}, i / {ROUND} + 1, 'model', i / {CANDIDATES_PER_PROMPT} + 1, 0, 0,"
        f"{answer}, 'stop', 20, 10, 0.01, 'vllm 0.32.0 cpu float32', {moment} FROM {numbers}",
        "INSERT INTO comparisons (id, round_id, position, candidate_a_id, example_id, generation_a_id, judge,"
        "answer, no_answer, outcome, reason) "
        f"SELECT i + 1, i / {ROUND} + 1, i % {ROUND}, i % {CANDIDATES} + 1, i / {CANDIDATES} + 1, i + 1, "
        "'exact:0123456789ab', 'forty-two', i < 0, CASE WHEN i % 50 = 7 THEN NULL ELSE i % 3 / 2.0 END, "
        f"CASE WHEN i % 50 = 7 THEN 'no_answer' END FROM {numbers}",
        TALLIES,
        COSTS,
        TOTALS_OF_ROUNDS,
    ]
