"""Examples that were drawn together: what names their clusters, and what follows for new examples."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text
from stored_campaigns import store_campaign
from test_new_examples import ENDED, OWN_PROMPTS, beyond_lines_of, full

from winnow.algorithms.bounds.averaged_bets import ratio_interval
from winnow.tasks.data.clusters import clusters_of
from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.best_mean.holdout.results import HeldOut, completed
from winnow.tasks.objectives.best_mean.holdout.split import split_examples
from winnow.tasks.setup.load import check_campaign_file

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def checked(campaign_file, folder):
    """A checked campaign on rows of 40 documents, two of each."""

    def check(*settings, docs=40, **columns):
        rows = [
            {"id": f"e{i}", "input": f"{i} plus", "target": "x", "doc": f"d{i // 2}", **columns}
            for i in range(2 * docs)
        ]
        (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return check_campaign_file(campaign_file(), settings)

    return check


def test_the_cluster_is_in_the_identity_and_absent_without_one(checked):
    assert "cluster" not in checked().spec.identity()["dataset"]
    identity = checked("dataset.cluster=doc").spec.identity()
    assert identity["dataset"]["cluster"] == "doc"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"doc": None}, "example 1 has no value in doc, so its cluster is unknown"),
        ({"doc": ["a"]}, "example 1 has a list or an object in doc"),
        ({"doc": "same"}, "doc has the same value in every example"),
    ],
)
def test_a_field_that_names_no_clusters_is_refused(checked, columns, said):
    with pytest.raises(SpecError, match=f"--set dataset.cluster: {said}"):
        checked("dataset.cluster=doc", **columns)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("certify", "certify counts single examples: its bets need independent labels, and labels of one"),
        ("route", "route counts single examples: prompts arrive one by one"),
    ],
)
def test_an_objective_that_counts_single_examples_refuses_clusters_and_says_why(name, why):
    settings = ["dataset.cluster=id", f"dataset.path={EXAMPLES / 'data.jsonl'}"]
    with pytest.raises(SpecError, match=rf"dataset\.cluster: is only for best-mean and best-duel: {why}"):
        check_campaign_file(str(EXAMPLES / f"{name}.yaml"), settings)


def test_a_field_that_no_example_has_is_refused_and_one_that_some_lack(checked):
    with pytest.raises(SpecError, match=r"--set dataset\.cluster: .*dco"):
        checked("dataset.cluster=dco")
    with pytest.raises(SpecError, match="example 2 has no value in doc"):
        clusters_of([{"doc": 1}, {}], "doc")


def test_clusters_are_values_and_numbers_are_not_texts():
    assert clusters_of([{"a": {"b": 1}}, {"a": {"b": "1"}}, {"a": {"b": 1}}], "a.b") == ["1", '"1"', "1"]


CLUSTERS = [f"d{i // 3}" for i in range(300)]
KEYS = [f"e{i}" for i in range(300)]


def split(share=0.4, seed=7, keys=KEYS, clusters=CLUSTERS):
    return split_examples(keys, share=share, seed=seed, clusters=clusters)


def test_whole_clusters_are_held_out_whatever_the_order_of_rows():
    found = split()
    held_out = {CLUSTERS[each] for each in found.held_out}
    assert held_out.isdisjoint(CLUSTERS[each] for each in found.selection)
    assert (len(found.held_out), len(found.selection), len(held_out)) == (120, 180, 40)
    assert found.clusters == tuple(CLUSTERS[each] for each in found.held_out)
    backwards = split(keys=KEYS[::-1], clusters=CLUSTERS[::-1])
    assert [KEYS[::-1][each] for each in backwards.held_out] == [KEYS[each] for each in found.held_out]
    assert {CLUSTERS[each] for each in split(seed=8).held_out} != held_out


def test_too_few_clusters_are_refused_on_either_side():
    with pytest.raises(SpecError, match="holds out 29 of the 100 clusters; intervals for new examples need"):
        split(share=0.29)
    with pytest.raises(SpecError, match="holds out 100 of the 100 clusters"):
        split(share=0.993)


def test_a_campaign_holds_out_whole_clusters(checked):
    found = checked("dataset.cluster=doc", "holdout=0.8", "stopping.budget=400").split
    assert len(set(found.clusters)) == 32


def test_held_out_intervals_are_those_of_clusters_with_unscored_ones_at_their_worst():
    clusters = [f"d{i // 4}" for i in range(200)]
    scores = [float(each) for each in np.random.default_rng(4).random(50).repeat(4) < 0.7]
    scores[0] = None
    standing = HeldOut(
        n_examples=200, n_selection=9, winner="a", runner_up=None, told=200, scored=199, is_complete=True
    )
    found = completed(standing, scores, clusters=clusters)
    least = np.array([each or 0.0 for each in scores]).reshape(50, 4).sum(axis=1)
    most = np.array([1.0 if each is None else each for each in scores]).reshape(50, 4).sum(axis=1)
    sizes = np.full(50, 4)
    assert found.lower == ratio_interval(least, sizes, 0.025)[0]
    assert found.upper == ratio_interval(most, sizes, 0.025)[1]
    assert found.clusters == 50
    by_example = completed(standing, scores)
    assert found.upper - found.lower > 1.3 * (by_example.upper - by_example.lower)


def clustered_campaign(database, name, rows, size):
    """A campaign that ended, on examples of which so many in a row are of one document."""
    n = len(rows[0])
    campaign = store_campaign(database, name, n_examples=n, names="abc"[: len(rows)])
    asked = [(arm, at) for arm, row in enumerate(rows) for at, score in enumerate(row) if score is not None]
    planned = campaign.plan(0, [arm for arm, _ in asked], [at for _, at in asked])
    means = [float(np.mean([each for each in row if each is not None])) for row in rows]
    status = ["best", *["eliminated"] * (len(rows) - 1)]
    scores = [rows[arm][at] for arm, at in asked]
    campaign.finish(planned, scores, **ENDED | {"status": status}, estimates=means, lower=means, upper=means)
    with database.writing() as session:
        for statement in OWN_PROMPTS:
            session.execute(text(statement))
        for position in range(n):
            fields = json.dumps({"input": str(position), "doc": position // size})
            session.execute(
                text("UPDATE examples SET fields = :fields WHERE position = :position"),
                {"fields": fields, "position": position},
            )
    spec = {**campaign.record.spec, "dataset": {"cluster": "doc"}}
    return replace(campaign, record=replace(campaign.record, spec=spec))


def test_what_examples_show_one_by_one_clusters_may_not_show(database):
    """35 documents of ten examples; a is right on all examples of 7 documents more than b is."""
    rng = np.random.default_rng(3)
    ours = (np.arange(35) < 21).repeat(10).astype(float)
    theirs = (rng.permutation(35) < 14).repeat(10).astype(float)
    found = clustered_campaign(database, "documents", [ours.tolist(), theirs.tolist()], 10)
    answer = full(found)
    assert (answer.beyond.could_be_best, answer.beyond.clusters) == (("a", "b"), 35)
    assert answer.beyond.difference == pytest.approx(0.2)
    assert beyond_lines_of(answer)[0].startswith("a scores +0.200 against b (between -")
    assert (
        "if these 350 examples in 35 clusters are a random sample of the examples that you will "
        "see in production, with no cluster larger than the largest here"
    ) in beyond_lines_of(answer)[0]
    spec = {**found.record.spec, "dataset": {}}
    by_example = full(replace(found, record=replace(found.record, spec=spec)))
    assert by_example.beyond.could_be_best == ("a",)


def test_clusters_can_show_that_one_candidate_is_better(database):
    right, wrong = [1.0] * 120, [0.0] * 120
    answer = full(clustered_campaign(database, "clear", [right, wrong], 2))
    assert (answer.beyond.could_be_best, answer.beyond.is_better) == (("a",), True)
    assert beyond_lines_of(answer)[0] == (
        "a is better than every other candidate there (95% confidence, if the "
        "benchmark's clusters of examples are a random sample of the clusters of examples that you "
        "will see in production, with no cluster larger than the largest here)"
    )


@pytest.mark.parametrize(("size", "missing"), [(5, 0), (2, 1)])
def test_of_fewer_than_30_clusters_or_rows_that_are_not_complete_nothing_is_claimed(database, size, missing):
    right, wrong = [1.0] * 120, [0.0] * (120 - missing) + [None] * missing
    answer = full(clustered_campaign(database, "few", [right, wrong], size))
    assert (answer.beyond.could_be_best, answer.beyond.difference) == (("a", "b"), None)
    assert beyond_lines_of(answer) == [
        "no estimate: with dataset.cluster, a and b have to be scored on all examples, "
        "which have to be in at least 30 clusters"
    ]
