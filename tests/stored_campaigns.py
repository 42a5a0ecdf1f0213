"""Campaigns in a real database, written as a run writes them, but with made-up texts and scores."""

import atexit
import datetime as dt
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlalchemy import inspect

from winnow.storage.admin import schema
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import (
    CampaignRecord,
    NewCanary,
    NewCandidate,
    NewComparison,
    NewDecision,
    NewExample,
    NewGeneration,
    NewJudgment,
)

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)

OPENED = []
"""Databases that a test has opened and may leave open."""


def new_database(path):
    """An open database at this path, with all tables and no rows, closed behind the test at the latest."""
    shutil.copyfile(empty_database(), path)
    OPENED.append(open_database(f"sqlite:///{path}"))
    return OPENED[-1]


def close_opened():
    """Close all of them; those that are used again open what they need."""
    while OPENED:
        OPENED.pop().close()


@cache
def empty_database():
    """The path of one: a file is copied faster than migrated."""
    folder = tempfile.mkdtemp(prefix="empty-database-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "empty.db"
    with closing(open_database(f"sqlite:///{path}")) as database:
        ensure_schema(database)
    return path


def copy_tables(patch):
    """Have new files of SQLite get their tables by a copy, in a sixth of the time of migrating one."""
    migrate, empty = schema._migrate, empty_database()

    def copy(database):
        if database.is_postgresql or _has_tables(database):
            return migrate(database)
        with (
            closing(sqlite3.connect(empty)) as source,
            closing(database.engine.raw_connection()) as connection,
        ):
            source.backup(connection.driver_connection)

    patch.setattr(schema, "_migrate", copy)


def _has_tables(database):
    with database.engine.connect() as connection:
        return bool(inspect(connection).get_table_names())


def generation(key, **fields):
    """A text that is about to be stored."""
    made_up = {
        "model": "m",
        "prompt": "p",
        "seed": 1,
        "replicate": 0,
        "text": f"text of {key}",
        "finish_reason": "stop",
        "input_tokens": 3,
        "output_tokens": 2,
        "seconds": 0.25,
        "engine": "none",
    }
    return NewGeneration(key=key, **(made_up | fields))


def canary(verdict, **fields):
    """What a served model answered at a contact, about to be stored."""
    made_up = {"model": "f" * 64, "name": "m", "server": "http://h/v1", "epoch": 0, "prompts": "0" * 64}
    told = {"texts": ["a", None], "repeated": [], "changed": 0, "verdict": verdict}
    return NewCanary(**(made_up | told | {"input_tokens": 1, "output_tokens": 1} | fields))


def decision(n_candidates=3, **fields):
    """A decision that knows nothing and goes on, unless told otherwise."""
    unknown = [None] * n_candidates
    made_up = {
        "best_candidate_id": None,
        "estimates": unknown,
        "lower": unknown,
        "upper": unknown,
        "status": ["active"] * n_candidates,
        "claim": {"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "refuted": []},
        "stop": False,
        "reason": "running",
    }
    return NewDecision(**(made_up | fields))


def all_parts(values):
    """The optional parts of a decision, each of which says this of the candidates."""
    differences = {name: values for name in ("estimates", "lower", "upper")}
    bets = {name: values for name in ("wealths", "levels", "out_in_round", "out_at")}
    return {
        "ranking": values,
        "differences": {"against": 0, "delta": 0.05, **differences},
        "bets": bets,
    }


@dataclass(frozen=True)
class StoredCampaign:
    database: object
    record: CampaignRecord
    candidate_ids: list
    example_ids: list

    def plan(self, number, arms, examples, propensities=None):
        """Store a round's plan."""
        with self.database.writing() as session:
            return round_records.add_round(
                session,
                self.record.id,
                number=number,
                arms=arms,
                examples=examples,
                propensities=propensities,
                now=NOW,
            )

    def texts(self, round_, **fields):
        """Store a text for every pair of a round; return their ids by position."""
        keys = [f"{self.record.name}-{round_.number}-{position}" for position in range(len(round_.arms))]
        with self.database.writing() as session:
            made = [generation(key, **fields) for key in keys]
            stored = generation_records.add_generations(session, round_.id, made, NOW)
        return [stored[key].id for key in keys]

    def comparisons(self, round_, outcomes):
        """One comparison per pair; an outcome of None is one without an answer."""
        texts = self.texts(round_)
        return [
            NewComparison(
                position=position,
                candidate_a_id=self.candidate_ids[round_.arms[position]],
                example_id=self.example_ids[round_.examples[position]],
                generation_a_id=texts[position],
                judge="exact",
                outcome=outcome,
                reason="no_answer" if outcome is None else None,
            )
            for position, outcome in enumerate(outcomes)
        ]

    def duels(self, round_, judged):
        """One comparison per planned duel from its outcome (None is unscored) and its judgments."""
        keys = [f"{self.record.name}-{round_.number}-{position}" for position in range(len(judged))]
        with self.database.writing() as session:
            made = [generation(f"{key}-{side}") for key in keys for side in "ab"]
            texts = generation_records.add_generations(session, round_.id, made, NOW)
        return [
            NewComparison(
                position=position,
                candidate_a_id=self.candidate_ids[round_.arms[position][0]],
                candidate_b_id=self.candidate_ids[round_.arms[position][1]],
                example_id=self.example_ids[round_.examples[position]],
                generation_a_id=texts[f"{keys[position]}-a"].id,
                generation_b_id=texts[f"{keys[position]}-b"].id,
                judge="llm",
                outcome=outcome,
                reason="verdict_missing" if outcome is None else None,
                judgments=judgments,
            )
            for position, (outcome, judgments) in enumerate(judged)
        ]

    def decision(self, best=None, **fields):
        """A decision on its candidates that knows nothing and goes on, unless told otherwise."""
        best_id = None if best is None else self.candidate_ids[best]
        return decision(len(self.candidate_ids), best_candidate_id=best_id, **fields)

    def finish_duels(self, round_, judged, *, best=None, **fields):
        """Store a round of duels, as `duels` makes them, and its decision; `best` is an arm."""
        comparisons = self.duels(round_, judged)
        believed = self.decision(best, **fields)
        with self.database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, comparisons, believed, NOW)

    def finish(self, round_, outcomes, *, best=None, **fields):
        """Store a round's outcomes and its decision; `best` is an arm."""
        comparisons = self.comparisons(round_, outcomes)
        believed = self.decision(best, **fields)
        with self.database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, comparisons, believed, NOW)


def judgment(presentation_order, verdict, *, judge="j", repeat=0, attempt=0, reply=None):
    """One call of a model that judges; a verdict that is text is the reason why there is none."""
    is_read = not isinstance(verdict, str)
    return NewJudgment(
        judge=judge,
        presentation_order=presentation_order,
        repeat=repeat,
        attempt=attempt,
        generation_id=reply,
        verdict=verdict if is_read else None,
        reason=None if is_read else verdict,
    )


def store_campaign(
    database,
    name="letters",
    *,
    objective="best-mean",
    budget=100,
    delta=0.05,
    epsilon=0.0,
    names="abc",
    n_examples=5,
):
    """Three candidates a, b, c on five examples e0 to e4, with no round yet."""
    with database.writing() as session:
        dataset_id = dataset_records.ensure_dataset(
            session,
            fingerprint="f" * 64,
            name="letters",
            path="letters.jsonl",
            examples=[
                NewExample(key=f"e{i}", fields={"input": str(i)}, targets=["x"]) for i in range(n_examples)
            ],
            now=NOW,
        )
        record = campaign_records.add_campaign(
            session,
            name=name,
            objective=objective,
            dataset_id=dataset_id,
            seed=7,
            spec={
                "stopping": {"delta": delta, "epsilon": epsilon},
                "selector": {"name": "ucb-e", "params": {}},
            },
            execution={"budget": budget},
            versions={"winnow-llm": "0"},
            candidates=[
                NewCandidate(name=each, model={"name": "m", "provider": "vllm"}, prompt={}, sampling={})
                for each in names
            ],
            now=NOW,
        )
        return StoredCampaign(
            database=database,
            record=record,
            candidate_ids=campaign_records.candidate_ids(session, record.id),
            example_ids=dataset_records.example_ids(session, dataset_id),
        )


def store_first_round(database):
    """A campaign of which one round is finished: the first candidate has two scores, the second one none."""
    campaign = store_campaign(database)
    campaign.finish(
        campaign.plan(0, [0, 0, 1], [0, 1, 0]),
        [1.0, 0.0, None],
        best=0,
        estimates=[0.5, None, None],
        lower=[0.0, None, None],
        upper=[1.0, None, None],
    )
    return campaign


def store_checked(checked, series=None, **options):
    """Store a checked campaign as a command that runs it does."""
    from winnow.flows.run.launch import launching

    with launching() as launch:
        launch.store(checked, series, **options)
