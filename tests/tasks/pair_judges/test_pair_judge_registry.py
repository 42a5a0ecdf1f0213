"""Pair judges by name: what is refused, and how a package adds one."""

import re
import subprocess
import sys

import pytest
from scripted_judges import MODEL

from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.registry import create_pair_judge, describe_pair_judge, pair_judge_names

SLOW = (
    "torch",
    "vllm",
    "transformers",
    "winnow.tasks.judges.pairwise.llm",
    "winnow.tasks.judges.pairwise.rules",
)
MODULE = '''
class Longer:
    """The longer answer wins."""

    models, is_deterministic = (), True

    def __init__(self, *, by: int = 1):
        self.identity = {"by": by}

    def calls(self, duel, replies):
        return ()

    def verdict(self, duel, replies):
        """Not asked for here."""
'''
ENTRIES = "[winnow.pair_judges]\nacme-longer = acme_pairs:Longer\nllm = acme_gone:Gone\n"


@pytest.fixture
def acme(tmp_path, monkeypatch):
    (tmp_path / "acme_pairs.py").write_text(MODULE)
    metadata = tmp_path / "acme_pairs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pairs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_pairs", None)


RULES = {"scorer": {"type": "exact"}}
LLM = {"models": [MODEL]}
VLLM = {**MODEL, "provider": "vllm"}


@pytest.mark.parametrize(
    ("type", "params", "path", "sentence"),
    [
        (
            "lmm",
            {},
            "judge.type",
            "unknown pair judge 'lmm'; did you mean 'llm'? available: human, llm, rules",
        ),
        ("rules", {}, "judge.scorer", "rules needs scorer"),
        ("rules", {"scorer": "exact"}, "judge.scorer", "must be a mapping of keys to values, got 'exact'"),
        ("rules", {"scorer": {}}, "judge.scorer.type", "must name a judge: one of acc, acc_norm, all, any"),
        ("rules", {"scorer": {"type": "exat"}}, "judge.scorer.type", "did you mean 'exact'?"),
        (
            "rules",
            {"scorer": {"type": "best-of"}},
            "judge.scorer.type",
            "best-of chooses among the outputs of a pair",
        ),
        ("rules", {"scorer": {"type": "exact", "strip": 1}}, "judge.scorer.strip", "true or false, got 1"),
        ("rules", {**RULES, "both_right": "longer"}, "judge.both_right", "must be 'shorter', 'clearer-"),
        ("rules", {**RULES, "both_rong": "tie"}, "judge.both_rong", "did you mean 'both_wrong'?"),
        ("llm", {}, "judge.models", "llm needs models"),
        ("llm", {"models": []}, "judge.models", "must have at least 1 entry, got []"),
        ("llm", {"models": ["m"]}, "judge.models[0]", "must be a mapping of keys to values, got 'm'"),
        ("llm", {"models": [{"name": "m"}]}, "judge.models[0].model", "is missing; add it"),
        ("llm", {"models": [{"model": "x"}]}, "judge.models[0].name", "is missing; add it"),
        ("llm", {"models": [{**MODEL, "modle": "x"}]}, "judge.models[0].modle", "did you mean 'model'?"),
        ("llm", {"models": [{**MODEL, "name": "a b"}]}, "judge.models[0].name", "got 'a b'"),
        ("llm", {"models": [VLLM], "temperature": 3.0}, "judge.temperature", "temperatures up to 2, got 3"),
        (
            "llm",
            {"models": [{**VLLM, "generate_config": {"temperature": 3.0}}]},
            "judge.models[0].generate_config.temperature",
            "temperatures up to 2, got 3",
        ),
        ("llm", {"models": [{**MODEL, "chat": "yes"}]}, "judge.models[0].chat", "boolean, got 'yes'"),
        (
            "llm",
            {"models": [{**MODEL, "generate_config": {"top_k": -1}}]},
            "judge.models[0].generate_config.top_k",
            "got -1",
        ),
        (
            "llm",
            {"models": [{**MODEL, "generate_config": {"topp": 1.0}}]},
            "judge.models[0].generate_config.topp",
            "did you mean 'top_p'?",
        ),
        (
            "llm",
            {"models": [{**MODEL, "provider": "vlm"}]},
            "judge.models[0].provider",
            "did you mean 'vllm'",
        ),
        (
            "llm",
            {"models": [MODEL, {**MODEL, "name": "n", "model": "./no"}]},
            "judge.models[1].model",
            "there is no checkpoint in './no'",
        ),
        ("llm", {"models": [MODEL, MODEL]}, "judge.models[1].judge_id", "'m' is used twice"),
        (
            "llm",
            {"models": [MODEL, {**MODEL, "judge_id": "other", "chat": True}]},
            "judge.models[1].name",
            "two models have the name 'm'; rename one",
        ),
        ("llm", {**LLM, "max_reasks": -1}, "judge.max_reasks", "must be at least 0, got -1"),
        (
            "llm",
            {**LLM, "order_aggregation": "max"},
            "judge.order_aggregation",
            "must be 'tie' or 'mean', got 'max'",
        ),
        ("llm", {**LLM, "min_valid_judges": 2}, "judge.min_valid_judges", "the number of models (1), got 2"),
        ("llm", {**LLM, "repeats": 3}, "judge.repeats", "'m' is greedy, so 3 repeats would be equal"),
        ("llm", {**LLM, "template": "{{ answer_a + answer_b }}"}, "judge.verdict_format", "set the form of"),
        ("llm", {**LLM, "verdict_pattern": "x"}, "judge.verdict_pattern", "needs a score_mapping"),
        ("llm", {**LLM, "score_mapping": {"A": "1"}}, "judge.score_mapping", "a number, got '1'"),
        (
            "llm",
            {**LLM, "score_mapping": {"A": 1, "B": 0}, "verdict_format": "[[A]]"},
            "judge.verdict_format",
            "not both",
        ),
        (
            "llm",
            {**LLM, "score_mapping": {"A": 1, "AB": 0}, "verdict_pattern": r"\w+", "read": "choice"},
            "judge.score_mapping",
            "none is the beginning of another",
        ),
    ],
)
def test_what_is_not_accepted_is_named_with_its_place_and_what_is(type, params, path, sentence):
    with pytest.raises(SpecError, match=re.escape(sentence)) as caught:
        create_pair_judge(type, **params)
    assert caught.value.path == path


def test_every_pair_judge_describes_itself():
    assert {"llm", "rules"} <= set(pair_judge_names())
    summaries = {name: describe_pair_judge(name).summary for name in ("llm", "rules")}
    assert all(summary.endswith(".") for summary in summaries.values())
    assert [each.name for each in describe_pair_judge("rules").parameters] == [
        "scorer",
        "both_right",
        "both_wrong",
    ]
    assert [each.name for each in describe_pair_judge("llm").parameters if each.required] == ["models"]


@pytest.mark.usefixtures("acme")
def test_a_package_adds_a_pair_judge_but_cannot_replace_a_built_in_one():
    assert "acme-longer" in pair_judge_names()
    assert create_pair_judge("acme-longer", by=2).identity == {"by": 2}
    with pytest.raises(JudgeError, match="whole number, got 'x'"):
        create_pair_judge("acme-longer", by="x")
    assert [ref.name for ref in create_pair_judge("llm", **LLM).models] == ["m"]


def test_a_judges_id_and_name_stand_for_each_other():
    spec = {"judge_id": "j1", "provider": "transformers", "model": "owner/judge"}
    assert create_pair_judge("llm", models=[spec]).models[0].name == "j1"


def test_naming_the_pair_judges_imports_nothing_slow():
    code = (
        "import sys; from winnow.tasks.judges.registry import pair_judge_names; pair_judge_names();"
        f"print([n for n in {SLOW} if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_making_a_judge_loads_no_model_library():
    code = (
        "import sys; from winnow.tasks.judges.registry import create_pair_judge;"
        f"create_pair_judge('llm', models=[{MODEL!r}]);"
        "create_pair_judge('rules', scorer={'type': 'exact'});"
        f"print([n for n in {SLOW[:3]} if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
