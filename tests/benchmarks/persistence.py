"""Comparisons, with their generations, stored per second, in the transactions of real rounds."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.measurements import Measurement
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import (
    NewCandidate,
    NewComparison,
    NewDecision,
    NewExample,
    NewGeneration,
)
from winnow.tasks.campaign.lease import now

CANDIDATES, EXAMPLES = 20, 2048


def measure(_: Path) -> Iterator[Measurement]:
    for batch in (64, 1024):
        with tempfile.TemporaryDirectory() as folder:
            database = open_database(f"sqlite:///{folder}/bench.db")
            ensure_schema(database)
            rate, size = _store(database, batch)
            bytes_each = Path(folder, "bench.db").stat().st_size / size
            yield Measurement(
                f"comparisons stored in SQLite, rounds of {batch}",
                f"{rate:,.0f}/s, {bytes_each:.0f} bytes each with its generation",
                "at least 5,000/s",
            )
            database.close()


def _store(database: Database, batch: int) -> tuple[float, int]:
    """Store a whole grid round by round; comparisons per second, and how many."""
    campaign, candidates, examples = _prepared(database)
    pairs = [(arm, example) for example in range(EXAMPLES) for arm in range(CANDIDATES)]
    start = time.perf_counter()
    for number, first in enumerate(range(0, len(pairs), batch)):
        round_pairs = pairs[first : first + batch]
        with database.writing() as session:
            arms, positions = [arm for arm, _ in round_pairs], [example for _, example in round_pairs]
            round_ = round_records.add_round(
                session, campaign, number=number, arms=arms, examples=positions, now=now()
            )
        made = [_generation(number, arm, example) for arm, example in round_pairs]
        with database.writing() as session:
            texts = generation_records.add_generations(session, round_.id, made, now())
        comparisons = [
            NewComparison(
                position=position,
                candidate_a_id=candidates[arm],
                example_id=examples[example],
                generation_a_id=texts[made[position].key].id,
                judge="exact:0123456789ab",
                answer="forty-two",
                outcome=float(example % 2),
            )
            for position, (arm, example) in enumerate(round_pairs)
        ]
        with database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, comparisons, _decision(candidates), now())
    return len(pairs) / (time.perf_counter() - start), len(pairs)


def _prepared(database: Database) -> tuple[int, list[int], list[int]]:
    with database.writing() as session:
        rows = [
            NewExample(key=str(i), fields={"input": f"question {i}"}, targets=["1"]) for i in range(EXAMPLES)
        ]
        dataset = dataset_records.ensure_dataset(
            session, fingerprint="0" * 64, name="bench", path="bench", examples=rows, now=now()
        )
        new = [NewCandidate(name=f"c{i}", model={}, prompt={}, sampling={}) for i in range(CANDIDATES)]
        campaign = campaign_records.add_campaign(
            session,
            name="bench",
            objective="best-mean",
            dataset_id=dataset,
            seed=0,
            spec={},
            execution={},
            versions={},
            candidates=new,
            now=now(),
        )
        return (
            campaign.id,
            campaign_records.candidate_ids(session, campaign.id),
            dataset_records.example_ids(session, dataset),
        )


def _generation(number: int, arm: int, example: int) -> NewGeneration:
    return NewGeneration(
        key=f"{arm:032x}{example:032x}",
        model=f"model-{arm}",
        prompt=f"Question {example}: what is the answer to life, the universe and everything? Answer: ",
        seed=0,
        replicate=0,
        text="The answer, as everybody knows, is forty-two.",
        finish_reason="stop",
        input_tokens=20,
        output_tokens=10,
        seconds=0.01,
        engine="bench",
    )


def _decision(candidates: list[int]) -> NewDecision:
    values = [0.5] * CANDIDATES
    return NewDecision(
        best_candidate_id=candidates[0],
        estimates=values,
        lower=values,
        upper=values,
        status=["active"] * CANDIDATES,
        claim={"kind": "none", "delta": None, "raised_by": [], "assumptions": [], "refuted": []},
        stop=False,
        reason="running",
    )
