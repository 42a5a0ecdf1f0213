"""Judges and models within a judge: what the table declares, and nothing that only looks like one."""

import pytest

from winnow.tasks.judges.registry import describe, describe_pair_judge
from winnow.tasks.setup.definition_changes import IdentityChanged, refuse_other_identity
from winnow.tasks.spec.campaign import with_servers, without_servers
from winnow.tasks.spec.judge_tree import JUDGES, judge_tree, judging_models, scored_by

SERVER = {"provider": "openai", "model": "m", "model_base_url": "https://there/v1", "api_key": "$KEY"}
JUDGE = {"name": "j", **SERVER}
DATA = [
    {"type": "code"},
    {"type": "acc"},
    {"type": "human"},
    {"type": "llm", "model": JUDGE, "models": [JUDGE]},
    {"type": "all", "judges": [{"type": "llm", "model": JUDGE}]},
    JUDGE,
]
SCHEMAS = [
    *({"const": each} for each in DATA),
    *({"default": each} for each in DATA),
    *({"enum": [each, "x"]} for each in DATA),
    *({"examples": [each]} for each in DATA),
    *({"properties": {"model": {"const": each}, "judges": {"enum": [each]}}} for each in DATA),
    {"model": JUDGE, "models": [JUDGE], "judges": [{"type": "code"}], "scorer": {"type": "acc"}},
]


def wrapped(judge):
    return [
        judge,
        {"type": "all", "judges": [judge, {"type": "exact"}]},
        {"type": "weighted", "weights": [1], "judges": [{"type": "any", "judges": [judge]}]},
        {"type": "rules", "scorer": judge},
    ]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_a_schema_holds_is_data(schema):
    for judge in wrapped({"type": "json-schema", "schema": {"type": "object", **schema}}):
        tree = judge_tree(judge)
        assert {each.type for each in tree.walk()} <= {
            "json-schema",
            "exact",
            "all",
            "any",
            "rules",
            "weighted",
        }
        assert (tree.models, scored_by(judge)) == ((), ())
        spec = {"models": [], "judge": judge, "metrics": [{"name": "x", "judge": judge}]}
        assert without_servers(spec) == (spec, {})


@pytest.mark.parametrize(
    "judge",
    [
        {"type": "llm", "rubric": {"model": "It names one.", "judges": "None are named."}, "model": JUDGE},
        {"type": "llm", "score_mapping": {"model": 1.0, "models": 0.0}, "models": [JUDGE]},
    ],
)
def test_labels_and_criteria_are_data(judge):
    assert judge_tree(judge).models == (JUDGE,)


def test_places_and_models_are_in_the_order_of_the_file():
    def model(name):
        return {"name": name, **SERVER}

    judge = {
        "type": "all",
        "judges": [
            {"type": "llm", "models": [model("a"), model("b")], "model": model("c")},
            {"type": "contains"},
            {"type": "any", "judges": [{"type": "inspect-graded", "model": model("d")}]},
        ],
    }
    tree = judge_tree(judge, "metrics[0].judge")
    assert [(each.place.removeprefix("metrics[0]."), each.type) for each in tree.walk()] == [
        ("judge", "all"),
        ("judge.judges[0]", "llm"),
        ("judge.judges[1]", "contains"),
        ("judge.judges[2]", "any"),
        ("judge.judges[2].judges[0]", "inspect-graded"),
    ]
    assert [each.type for each in tree.parts] == ["llm", "contains", "inspect-graded"]
    assert [each["name"] for each in tree.models] == ["c", "a", "b", "d"]
    places = [place for each in tree.walk() for place, _ in each.own_models]
    assert places[:2] == ["metrics[0].judge.judges[0].model", "metrics[0].judge.judges[0].models[0]"]


def test_the_scorer_of_rules_is_a_judge_and_no_part_of_its_score():
    tree = judge_tree({"type": "rules", "scorer": {"type": "any", "judges": [{"type": "exact"}]}})
    assert [each.place for each in tree.walk()] == ["judge", "judge.scorer", "judge.scorer.judges[0]"]
    assert tree.parts == (tree,)


def test_of_a_plug_in_models_are_known_by_convention_and_judges_are_not():
    plugin = {
        "type": "acme",
        "model": {"name": "a"},
        "models": [{"name": "b"}],
        "judges": [{"type": "human"}, {"type": "llm", "model": {"name": "c"}}],
        "scorer": {"type": "code"},
        "schema": {"model": {"name": "d"}},
    }
    tree = judge_tree(plugin)
    assert [each.type for each in tree.walk()] == ["acme"]
    assert [each["name"] for each in tree.models] == ["a", "b", "c"]
    assert tree.is_plugin
    assert not judge_tree({"type": "exact"}).is_plugin


@pytest.mark.parametrize(
    "given",
    [
        None,
        "exact",
        {},
        {"type": ["exact"]},
        {"type": {"all": 1}, "judges": "x"},
        {"type": "all"},
        {"type": "all", "judges": {"type": "exact"}},
        {"type": "all", "judges": [None, 3, "exact"]},
        {"type": "llm", "model": "m", "models": {"a": 1}},
        {"type": "rules", "scorer": "exact"},
    ],
)
def test_what_is_malformed_is_left_to_its_reader(given):
    tree = judge_tree(given)
    assert (list(tree.walk()), tree.models) == ([tree], ())


MAPPINGS_OF_DATA = {
    ("human", "levels"),
    ("json-schema", "schema"),
    ("llm", "rubric"),
    ("llm", "score_mapping"),
    ("exact_match", "filters"),
    ("lm-eval", "filters"),
    ("lm-eval", "options"),
    ("similarity", "embedder_params"),
}
"""Parameters that hold mappings which describe neither a judge nor a model."""


def test_every_parameter_that_holds_judges_or_models_is_declared():
    described = [(name, describe(name)) for name, each in JUDGES.items() if each.outputs]
    described += [(name, describe_pair_judge(name)) for name, each in JUDGES.items() if each.pairs]
    found = {
        (name, parameter.name)
        for name, judge in described
        for parameter in judge.parameters
        if "Mapping" in parameter.accepts or "dict" in parameter.accepts or parameter.accepts == "object"
    }
    declared = {(name, key) for name, each in JUDGES.items() for key in each.models}
    declared |= {(name, each.judges) for name, each in JUDGES.items() if each.judges}
    assert found - MAPPINGS_OF_DATA == declared


def test_servers_of_models_within_judges_are_taken_out_and_put_back():
    judge = {"type": "all", "judges": [{"type": "exact"}, {"type": "llm", "model": JUDGE}]}
    spec = {"models": [], "judge": {"type": "exact"}, "metrics": [{"name": "x", "judge": judge}]}
    bare, servers = without_servers(spec)
    (place, model), *_ = judging_models(bare)
    assert place == "metrics.x.j"
    assert not model.keys() & {"api_key", "model_base_url"}
    assert with_servers(bare, servers) == spec


def test_a_model_that_has_a_judge_id_alone_is_known_by_it():
    """A folder that is not there any more is told of a judge's model too, whichever name it has."""
    judge = {"type": "llm", "model": {"judge_id": "j", "provider": "vllm", "model": "gone/folder"}}
    stored, given = (
        {"judge": judge, "judge_identity": {"fingerprints": {"j": digest}}} for digest in ("before", "after")
    )
    with pytest.raises(IdentityChanged, match="the folder of model j, gone/folder, does not exist"):
        refuse_other_identity("c", stored, {**given, "models": [], "selector": None})
