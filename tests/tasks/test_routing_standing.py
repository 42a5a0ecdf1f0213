"""What routing has brought over a single candidate: from the stored rounds alone, and as it is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text
from stored_campaigns import StoredCampaign
from tiny_models import save_tiny_llama

from winnow.algorithms.route.advantage import Advantage
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.replay import restored
from winnow.tasks.objectives.route.exporting import doubt_of, export_policy
from winnow.tasks.objectives.route.selector import as_router
from winnow.tasks.objectives.route.status import standing_of
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign

STORAGE = "sqlite:///results.db"
N_EXAMPLES = 40
SPEC = """\
name: routed
objective: route
seed: 1
models:
  - {name: one, provider: transformers, model: embedder}
prompts:
  - {name: a, template: "{{ input }}"}
  - {name: b, template: "{{ input }}:"}
  - {name: c, template: "{{ input }}!"}
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: exact}
embedder: {type: precomputed, path: vectors.jsonl}
selector: {name: pak-ucb, params: {kernel: linear, explore: 0.6}}
batch_size: 4
stopping: {budget: 40, delta: 0.2}
"""


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Ten rounds of four prompts, some unscored, as a router that explores may have asked for them."""
    monkeypatch.chdir(tmp_path)
    save_tiny_llama(tmp_path / "embedder", seed=2)
    rng = np.random.default_rng(0)
    rows = [f'{{"id": "e{i}", "input": "x {i}", "target": "t"}}\n' for i in range(N_EXAMPLES)]
    Path("data.jsonl").write_text("".join(rows))
    vectors = [f'{{"id": "e{i}", "vector": {rng.normal(size=3).tolist()}}}\n' for i in range(N_EXAMPLES)]
    Path("vectors.jsonl").write_text("".join(vectors))
    Path("campaign.yaml").write_text(SPEC)
    database = open_database(STORAGE)
    ensure_schema(database)
    record = open_campaign(database, check_campaign_file("campaign.yaml"))
    with database.writing() as session:
        # The third candidate comes after three rounds.
        session.execute(text("UPDATE candidates SET first_round = 3 WHERE position = 2"))
        campaign = StoredCampaign(
            database=database,
            record=record,
            candidate_ids=campaign_records.candidate_ids(session, record.id),
            example_ids=dataset_records.example_ids(session, record.dataset_id),
        )
    for number in range(10):
        arms = rng.integers(2 if number < 3 else 3, size=4).tolist()
        outcomes = [None if rng.random() < 0.1 else float(rng.integers(2)) for _ in arms]
        drawn = rng.choice([0.3, 0.6, 0.7], size=4).tolist()
        campaign.finish(campaign.plan(number, arms, list(range(4 * number, 4 * number + 4)), drawn), outcomes)
    yield database
    database.close()


def test_the_stored_rounds_say_what_the_selector_says(database):
    record, checked = reopen_campaign(database, "routed", STORAGE)
    checked = checked.prepared(database)
    with database.reading() as session:
        selector, _, _ = restored(session, record, checked)
        standing = standing_of(Look(session, record))
    wanted = as_router(selector).advantage()
    assert standing.advantage == wanted
    assert standing.single == ["one/a", "one/b", "one/c"][wanted.single]
    assert wanted.delta == 0.2
    inner = as_router(selector).inner.advantage()
    for mine, theirs in ((wanted.estimate, inner.estimate), (wanted.lower, inner.lower)):
        assert mine == theirs / 2.0
    assert -1.0 <= wanted.lower <= wanted.estimate <= wanted.upper <= 1.0


def test_an_exported_policy_comes_with_the_doubt_whether_routing_pays(database):
    exported = export_policy(database, *reopen_campaign(database, "routed", STORAGE), Path("policy"))
    assert exported.prompts == 38  # two of the 40 have no score
    assert exported.doubt.startswith(
        "routing was not shown to pay: its mean score is estimated to differ by "
    )
    assert "the 80% interval is" in exported.doubt


def advantage(estimate, lower, upper):
    return Advantage(estimate=estimate, lower=lower, upper=upper, delta=0.05, single=1)


def test_the_doubt_says_what_the_interval_does():
    names = ["one", "other"]
    assert doubt_of(advantage(0.1, 0.01, 0.2), names) is None
    assert doubt_of(advantage(0.1, 0.0, 0.2), names) == (
        "routing was not shown to pay: its mean score is estimated to differ by +0.100 from that of the best "
        "single candidate on the prompts since it joined, by this estimate other; the 95% "
        "interval is +0.000 to +0.200, whichever of them is the best"
    )
    narrow = replace(advantage(0.1, 0.0, 0.2), delta=0.001)
    assert "the 99.9% interval is" in doubt_of(narrow, names)
    assert doubt_of(advantage(-0.1, -0.2, -0.01), names).startswith("routing did not pay: its mean")
    assert "it is unknown what one candidate alone would have scored" in doubt_of(None, names)


def test_whom_routing_was_not_compared_with_is_named_whatever_else_was_shown():
    names = ["one", "other", "new"]
    assert doubt_of(advantage(0.1, 0.01, 0.2), names, [2]) == (
        "routing was shown to pay against each single candidate except new, with which it is not compared"
    )
    assert doubt_of(advantage(0.1, 0.0, 0.2), names, [2, 0]).endswith(
        "whichever of them is the best; one, new are not among them"
    )
