"""In what two definitions differ is told in words that a user knows, and each thing once."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.setup.definition_changes import changes, differences

OLD, NEW = (sha256(text).hexdigest() for text in (b"old", b"new"))


def lines(before, after):
    return [each.line for each in changes(before, after)]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("dataset_fingerprint", "the examples changed"),
        ("model_fingerprints.v1.0", "models[v1.0]: its files changed (weights, adapter or chat template)"),
        ("few_shot_examples.asked", "prompts[asked]: the solved examples that it shows changed"),
        ("history_fingerprint", "history: the earlier scores changed"),
        ("held_out_fingerprint", "holdout: the examples that are held out changed"),
        ("judge_identity.fingerprints.grader", "judge: the files of model grader changed"),
        ("judge_identity.code.files.acme.words", "judge: the code of acme.words changed"),
        ("judge_identity.code.embedder.model", "judge_identity.code.embedder.model: its content changed"),
        ("metric_fingerprints.grader", "metrics: the files of model grader changed"),
        ("metric_code.short.files.words", "metrics: the code of words changed"),
        ("selector_code.acme", "selector: the code of acme changed"),
        ("embedder_identity.code.acme", "embedder: the code of acme changed"),
        ("embedder_identity.model", "embedder: the files of its model changed"),
        ("embedder_identity.vectors", "embedder: the vectors changed"),
    ],
)
def test_what_a_digest_stands_for_is_said_in_words(key, line):
    assert lines({key: OLD}, {key: NEW}) == [line]


def test_the_code_of_a_judge_within_another_is_named():
    before, after = (
        {"judge_identity": {"code": {"judges": [{"files": {"a": each}}]}}} for each in (OLD, NEW)
    )
    assert lines(before, after) == ["judge: the code of a changed"]


def named(*names, **more):
    return [{"name": each, **more} for each in names]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            {"models": named("a", "b"), "model_fingerprints": {"a": OLD, "b": OLD}, "served_at": {"b": "x"}},
            {"models": named("a"), "model_fingerprints": {"a": OLD}, "served_at": {}},
            ["models[b] is gone"],
        ),
        (
            {"models": named("a", model="x"), "model_fingerprints": {"a": OLD}},
            {"models": named("a", model="y"), "model_fingerprints": {"a": NEW}},
            ["models[a].model: 'x' -> 'y'"],
        ),
        (
            {"models": named("a", "b"), "model_fingerprints": {"a": OLD, "b": OLD}},
            {"models": named("b"), "model_fingerprints": {"b": NEW}},
            ["models[b]: its files changed (weights, adapter or chat template)", "models[a] is gone"],
        ),
        (
            {"judge": {"type": "x"}, "judge_identity": {"code": {"version": 1}}},
            {"judge": {"type": "y"}, "judge_identity": {"code": {"version": 2}}},
            ["judge.type: 'x' -> 'y'"],
        ),
        (
            {"judge": {"type": "x"}, "judge_identity": {"code": {"version": 1}}},
            {"judge": {"type": "x"}, "judge_identity": {"code": {"version": 2}}},
            ["judge: the judge of this release reads some outputs differently (version 1 -> 2)"],
        ),
        (
            {"dataset": {"limit": 5}, "dataset_fingerprint": OLD, "held_out_fingerprint": OLD},
            {"dataset": {"limit": 6}, "dataset_fingerprint": NEW, "held_out_fingerprint": NEW},
            ["dataset.limit: 5 -> 6", "the examples changed"],
        ),
        (
            {"prompts": named("a"), "candidate_costs": {"m/a": 1.0}, "deterministic": [True]},
            {
                "prompts": named("a", "b"),
                "candidate_costs": {"m/a": 1.0, "m/b": 2.0},
                "deterministic": [True, True],
            },
            ["prompts[b] is new"],
        ),
        (
            {"generate_configs": named("warm", temperature=0.0), "deterministic": [True, True]},
            {"generate_configs": named("warm", temperature=1.0), "deterministic": [True, False]},
            ["generate_configs[warm].temperature: 0.0 -> 1.0"],
        ),
        (
            {"fresh_generations": False, "deterministic": [True]},
            {"fresh_generations": True, "deterministic": [False]},
            ["fresh_generations: False -> True"],
        ),
        (
            {"embedder": {"model": "x"}, "embedder_identity": {"model": OLD}},
            {"embedder": None, "metrics": named("m"), "metric_code": {"m": {"version": 1}}},
            ["embedder: {'model': 'x'} -> None", "metrics[m] is new"],
        ),
        (
            {"certify": {"cost": "size"}, "candidate_costs": {"m/a": 1.0}},
            {"streaming": False, "execution": {"group_size": 8}},
            ["certify: {'cost': 'size'} -> None", "streaming: None -> False"],
        ),
        (
            {"streaming": False, "execution": {"group_size": 8}},
            {"streaming": False, "execution": {"group_size": 9}},
            ["execution.group_size: 8 -> 9"],
        ),
        (
            {"exclude": [], "model_fingerprints": {"a": OLD, "b": OLD}},
            {"exclude": ["b"], "model_fingerprints": {"a": NEW}},
            ["exclude: [] -> ['b']", "models[a]: its files changed (weights, adapter or chat template)"],
        ),
        (
            {"selector": {"params": {}}, "betting_rule": "star"},
            {"selector": {"params": {"betting": "up"}}, "betting_rule": "up"},
            ["selector.params.betting: None -> 'up'"],
        ),
        ({"betting_rule": "star"}, {"betting_rule": "up"}, ["betting_rule: 'star' -> 'up'"]),
        (
            {"dataset_fingerprint": OLD, "candidate_costs": {"m/a": 1.0}},
            {"dataset_fingerprint": NEW, "candidate_costs": {"m/a": 2.0}},
            ["the examples changed"],
        ),
        (
            {"candidate_costs": {"m/a": 1.0}},
            {"candidate_costs": {"m/a": 2.0}},
            ["candidate_costs.m/a: 1.0 -> 2.0"],
        ),
    ],
)
def test_what_follows_from_another_change_is_not_told_beside_it(before, after, told):
    assert lines(before, after) == told


IDENTITIES = st.fixed_dictionaries(
    {},
    optional={
        "models": st.lists(st.sampled_from("ab"), unique=True).map(lambda names: named(*names)),
        "prompts": st.lists(st.sampled_from("ab"), unique=True).map(lambda names: named(*names)),
        "judge": st.fixed_dictionaries({"type": st.sampled_from("xy")}),
        "seed": st.integers(0, 2),
        **{
            key: st.sampled_from([None, OLD, NEW])
            for key in ("dataset_fingerprint", "history_fingerprint", "held_out_fingerprint", "selector_code")
        },
        **{
            key: st.dictionaries(st.sampled_from("ab"), st.sampled_from([OLD, NEW]))
            for key in (
                "model_fingerprints",
                "served_at",
                "few_shot_examples",
                "judge_identity",
                "metric_code",
            )
        },
    },
)


@given(IDENTITIES, IDENTITIES)
def test_whatever_differs_something_is_told_of_it(before, after):
    assert bool(changes(before, after)) == bool(differences(before, after))
