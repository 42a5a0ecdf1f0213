# ruff: noqa: E501 -- lists of odd values
"""Campaign files of whatever text and values, checked as `winnow validate` checks them."""

import json
from copy import deepcopy

import pytest
import yaml
from cases import JSON_VALUES, NASTY_TEXT, damaged, kept, paths_in, put, settles, taken_out
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from spec_files import load_spec

from winnow.flows.run.trust_prompt import Trust, approving
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.campaign import CampaignSpec

BASE = {
    "name": "letters",
    "objective": "best-mean",
    "seed": 7,
    "models": [
        {
            "name": "small",
            "provider": "transformers",
            "model": "small",
            "generate_config": {"max_tokens": 12},
        },
        {
            "name": "far",
            "provider": "openai",
            "model": "m",
            "model_base_url": "http://127.0.0.1:9/v1",
            "chat": True,
            "chat_template_args": {"enable_thinking": True},
            "reasoning": {"parser": "think-tags", "begins_inside": True},
        },
    ],
    "prompts": [
        {"name": "plain", "template": "{{ input }}="},
        {"name": "asked", "template": "Q {{ input }}:"},
        {
            "name": "chat",
            "messages": [
                {"role": "system", "content": "Go on."},
                {"role": "user", "content": "{{ input }}"},
                {"role": "assistant", "content": "So"},
            ],
            "few_shot": {
                "n": 2,
                "from": "data.jsonl",
                "fewshot_as_multiturn": True,
                "answer": "{{ target }}",
            },
        },
    ],
    "generate_configs": [{"name": "greedy"}, {"name": "warm", "temperature": 1.0}],
    "exclude": [{"model": "small", "prompt": "asked"}, {"model": "small", "prompt": "chat"}],
    "dataset": {
        "path": "data.jsonl",
        "fields": {"id": "id", "input": "input", "target": "target"},
        "limit": 5,
    },
    "judge": {"type": "contains"},
    "selector": {"name": "ucb-e", "params": {"a": 1.0}},
    "batch_size": 8,
    "stopping": {"budget": 40, "delta": 0.05},
    "fail_on_error": 0.5,
    "reuse": "all",
    "execution": {"max_retries": 1, "price_per_hour": 2.0, "prices": {"far": {"input": 1, "output": 2}}},
}
SPECS = {
    "best-mean": BASE,
    "best-duel": BASE
    | {
        "objective": "best-duel",
        "judge": {"type": "llm", "models": [{"provider": "openai", "model": "j", "model_base_url": "http://127.0.0.1:9/v1"}]},
        "selector": {"name": "llm-po", "params": {}},
        "stopping": {"budget": {"comparisons": 40, "tokens": 10_000}, "delta": 0.05},
    },
    "certify": BASE
    | {
        "objective": "certify",
        "certify": {"alpha": 0.2, "cost": "custom", "costs": {"small/plain": 1}, "unlabelled_per_label": 1},
        "selector": {"name": "r-eval", "params": {}},
    },
    "route": BASE
    | {
        "objective": "route",
        "embedder": {"type": "precomputed", "path": "vectors.jsonl"},
        "selector": {"name": "pak-ucb", "params": {"explore": 0.1}},
        "stopping": {"budget": 40},
    },
}  # fmt: skip
JUDGES = [
    "exact",
    "normalised",
    "numeric",
    "regex",
    "choice",
    "contains",
    "llm",
    "rule",
    "panel",
    "python",
    "zzz",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working folder with what the specs name."""
    folder = tmp_path_factory.mktemp("specs")
    (folder / "small").mkdir()
    (folder / "small" / "config.json").write_text('{"name": "small"}')
    rows = [{"id": f"e{i}", "input": f"{i} plus", "target": "abcdef"[i]} for i in range(6)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    vectors = [{"id": f"e{i}", "vector": [1.0, float(i)]} for i in range(6)]
    (folder / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in vectors))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield folder


def case(content, overrides=()):
    """Read it, and if it is a campaign check it, without allowing it anything."""
    with open("campaign.yaml", "wb") as file:
        file.write(content)
    found = settles(load_spec, "campaign.yaml", overrides, one_line=False)
    if isinstance(found, CampaignSpec):
        approve = approving(Trust())
        settles(lambda: check_campaign_file("campaign.yaml", overrides, approve), one_line=False)


def written(values):
    return yaml.safe_dump(values, allow_unicode=True).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("path", kept("specs"), ids=lambda path: path.name)
def test_files_that_are_kept_settle(folder, path):
    case(path.read_bytes())


def test_what_cases_begin_with_is_right(folder):
    for values in SPECS.values():
        (folder / "campaign.yaml").write_bytes(written(values))
        assert load_spec("campaign.yaml").name == "letters"


@tries(5)
@given(st.sampled_from(sorted(SPECS)).flatmap(lambda name: damaged(written(SPECS[name]))))
def test_damaged_files_settle(folder, content):
    case(content)


@tries(5)
@given(
    st.binary(max_size=100) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_whatever_bytes_settle(folder, content):
    case(content)


LIKELY = st.sampled_from([
    "", "x", 0, 1, -1, 0.5, 1e300, 2**70, True, None, [], {}, "all", "campaign", {"max_age": "7d"}, {"max_age": "-1y"},
    "{{ input }}", "{{ target }}", "{{ a.b }}", "(a+)+$", "(?R)?a", "a{1000}{1000}", "(", "campaign:none", "none.npz", "small",
    "data.jsonl", "vectors.jsonl", "/etc/passwd", "..", "~", "$HOME", "openai", "vllm", "http://[::1", "ftp://x", "http://u:p@h/v1",
    *JUDGES, "llm-po-bt", "champion", "rbf", "auto", "wsr", float("nan"), float("inf"), "1e9", "10GB", "factors", [[1.0, 2.0]],
])  # fmt: skip


@tries(15)
@given(st.data())
def test_files_with_other_values_settle(folder, data):
    values = deepcopy(SPECS[data.draw(st.sampled_from(sorted(SPECS)))])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(paths_in(values), key=str) or [()]))
        match data.draw(st.integers(0, 3)):
            case 0:
                taken_out(values, path)
            case 1:
                put(values, (*path[:-1], data.draw(NASTY_TEXT)), data.draw(LIKELY))
            case 2:
                put(values, path, data.draw(JSON_VALUES))
            case _:
                put(values, path, data.draw(LIKELY))
    case(written(values))


PARAMS = st.sampled_from([
    "a", "delta", "epsilon", "batch_size", "budget", "features", "explore", "kernel", "bandwidth", "eta", "alpha", "betting",
    "procedure", "rank", "assume_winner", "n_features", "exploration", "history", "n_arms", "name", "pattern", "extract",
    "no_answer", "case_sensitive", "options", "models", "prompt", "verdicts", "read", "ties", "presentation_order", "tolerance",
])  # fmt: skip
KINDS = st.sampled_from([
    "ucb-e", "ucb-e-lrf", "pulse", "champion", "llm-po", "llm-po-bt", "round-robin", "r-eval", "r-autoeval-plus", "pak-ucb",
    "rff-ucb", "lin-ucb", "random", "naive-krr", "sup-pak-ucb", "rucb", *JUDGES,
])  # fmt: skip


@tries(10)
@given(
    st.sampled_from(sorted(SPECS)),
    st.sampled_from(["selector", "judge"]),
    KINDS,
    st.dictionaries(PARAMS, LIKELY | JSON_VALUES, max_size=3),
)
def test_whatever_parameters_settle(folder, name, section, kind, params):
    given_ = {"name": kind, "params": params} if section == "selector" else {"type": kind, **params}
    case(written(SPECS[name] | {section: given_}))


KEYS = st.sampled_from(
    ["seed", "models[0].name", "models[9]", "stopping.budget", "a.b.c", "", "[", "]]", "judge", "x[0][0]"]
)


@tries(5)
@given(KEYS | NASTY_TEXT, st.sampled_from(["=", "", "=="]), NASTY_TEXT | JSON_VALUES.map(repr))
def test_whatever_is_set_settles(folder, key, equals, value):
    case(written(BASE), (f"{key}{equals}{value}",))
