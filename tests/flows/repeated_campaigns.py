"""Campaigns of one schedule whose candidates are models x prompts x ways of sampling, on tagged examples."""

import datetime as dt
from itertools import product

import numpy as np
from stored_campaigns import NOW, StoredCampaign, new_database

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import NewCandidate, NewExample

N_EXAMPLES = 40
MODELS, PROMPTS, WAYS = ("large", "small"), ("plain", "asked"), {"greedy": 0.0, "warm": 0.7}
SKILL = {"large": 0.65, "small": 0.35, "plain": 0.0, "asked": 0.15, "greedy": 0.0, "warm": -0.05}
"""What each choice adds to the chance of a right answer."""
CLAIM = {"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []}


def repeated_campaigns(folder, n=3):
    """So many campaigns of the schedule "nightly", a day apart; the two best change places each time."""
    database = new_database(folder / "winnow.db")
    return [nightly(database, number) for number in range(n)]


def nightly(database, number):
    names = list(product(MODELS, PROMPTS, WAYS))
    campaign = stored(database, f"nightly-{number}", number, names)
    rng = np.random.default_rng(number)
    means = np.array([sum(SKILL[each] for each in name) for name in names])
    means[2], means[3] = (0.8, 0.75) if number % 2 == 0 else (0.74, 0.81)
    best = 2 + number % 2
    # Candidates that do badly are scored on fewer examples, and the last one on none.
    told = [N_EXAMPLES if mean > 0.6 else 24 for mean in means[:-1]]
    pairs = [(arm, example) for arm, most in enumerate(told) for example in range(most)]
    outcomes = [float(rng.random() < means[arm] - 0.2 * (example % 2)) for arm, example in pairs]
    width = np.array([0.1 if most == N_EXAMPLES else 0.25 for most in told] + [0.5])
    campaign.finish(
        campaign.plan(0, [arm for arm, _ in pairs], [example for _, example in pairs]),
        outcomes,
        best=best,
        estimates=[*means[:-1].tolist(), None],
        lower=(means - width).clip(0.0, 1.0).tolist(),
        upper=(means + width).clip(0.0, 1.0).tolist(),
        status=["best" if arm == best else "eliminated" for arm in range(len(names))],
        claim=CLAIM,
        stop=True,
        reason="confident",
    )
    return campaign


def stored(database, name, number, names):
    examples = [
        NewExample(
            key=f"e{i}",
            fields={"input": f"{i} + {i}", "tag": ("sums", "carries")[i % 2]},
            targets=[str(2 * i)],
        )
        for i in range(N_EXAMPLES)
    ]
    candidates = [
        NewCandidate(
            name="/".join(each),
            model={"name": each[0]},
            prompt={"name": each[1]},
            sampling={"temperature": WAYS[each[2]], "max_tokens": 8},
        )
        for each in names
    ]
    with database.writing() as session:
        dataset_id = dataset_records.ensure_dataset(
            session, fingerprint="e" * 64, name="sums", path="sums.jsonl", examples=examples, now=NOW
        )
        record = campaign_records.add_campaign(
            session,
            name=name,
            objective="best-mean",
            dataset_id=dataset_id,
            seed=number,
            spec={
                "stopping": {"delta": 0.05, "epsilon": 0.0},
                "selector": {"name": "champion", "params": {}},
            },
            execution={"budget": 400},
            versions={"winnow-llm": "0"},
            candidates=candidates,
            now=NOW + dt.timedelta(days=number),
            series="nightly",
        )
        return StoredCampaign(
            database=database,
            record=record,
            candidate_ids=campaign_records.candidate_ids(session, record.id),
            example_ids=dataset_records.example_ids(session, dataset_id),
        )
