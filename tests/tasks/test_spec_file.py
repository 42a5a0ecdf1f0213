"""Every mistake in a campaign's file is named with its place and its remedy."""

import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from spec_files import load_spec

from winnow.algorithms.registry import BASELINES, SELECTORS
from winnow.flows.cli.start.specs import starter
from winnow.tasks.candidates.candidates import build_candidates
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.yaml_file import SpecFile, format_key, parse_key, parse_spec, read_spec_file, to_add
from winnow.tasks.spec import selector_traits
from winnow.tasks.spec.campaign import CampaignSpec, Objective


def complaint(path, overrides=()):
    with pytest.raises(SpecError) as caught:
        load_spec(path, overrides)
    return str(caught.value)


def test_a_file_without_mistakes_gives_the_campaign_it_describes(campaign_file):
    spec = load_spec(campaign_file())
    assert (spec.name, spec.seed, spec.batch_size) == ("letters", 7, 8)
    assert spec.models[0].generate_config.max_tokens == 12
    assert spec.storage == "sqlite:///winnow.db"


@pytest.mark.parametrize(
    ("replace", "by", "line", "said"),
    [
        ("seed: 7", "sede: 7", 3, "sede: unknown key; did you mean 'seed'?"),
        ("delta: 0.05", "detla: 0.05", 20, "stopping.detla: unknown key; did you mean 'delta'?"),
        ("seed: 7", "delta: 0.1", 3, "delta: unknown key; did you mean 'stopping.delta'?"),
        ("seed: 7", "budget: 9", 3, "budget: unknown key; did you mean 'stopping.budget'?"),
        ("seed: 7", "model: x", 3, "model: unknown key; did you mean 'models' or 'embedder.model'?"),
        ("id: id", "idd: id", 16, "dataset.fields.idd: unknown key; did you mean 'id'?"),
        (
            "{max_tokens: 12}",
            "{max_token: 12}",
            5,
            "models[0].generate_config.max_token: unknown key; did you mean 'max_tokens'?",
        ),
        (
            "    provider: transformers\n",
            "    provider: transformers\n    provieder: vllm\n",
            8,
            "models[1].provieder: unknown key; did you mean 'provider'?",
        ),
        ("{name: greedy}", "{name: g, zzz: 1}", 14, "generate_configs[0].zzz: unknown key; known"),
        (
            "{name: greedy}",
            "{name: g, batch_size: 1}",
            14,
            "generate_configs[0].batch_size: unknown key; did you mean 'batch_size' at the top of the file?",
        ),
        ("seed: 7", "scorer: exact", 3, "scorer: unknown key; did you mean 'judge'?"),
        ("id: id", "timeout: 3", 16, "dataset.fields.timeout: unknown key; known here"),
        (
            "provider: transformers",
            "dtype: bfloat16",
            5,
            "models[0].dtype: unknown key; did you mean 'model_args.dtype'?",
        ),
        ("seed: 7", "seed: seven", 3, "seed: must be a whole number (got 'seven')"),
        ("seed: 7", "seed: 7.5", 3, "seed: must be a whole number (got 7.5)"),
        ("seed: 7", "seed: -1", 3, "seed: must be at least 0 (got -1)"),
        ("name: letters", "name: no", 1, "name: must be text (got false); put"),
        ("name: letters", "name: a/b", 1, "name: may hold letters (a to z), digits, '.', '_' and '-', and"),
        ("seed: 7", "defaults: {a: 1}", 3, "defaults: unknown key; known here: "),
        ("seed: 7", "<<: 3", 3, "<<: merges a mapping, such as *name, or a list of mappings"),
        ("seed: 7", "<<: [{seed: 1}, 3]", 3, "<<: merges a mapping, such as *name, or a list of mappings"),
        (
            "seed: 7",
            "<<: {seed: 1}\n<<: {seed: 2}",
            4,
            "<<: the key occurs twice (first in line 3); keep one, with",
        ),
        ("seed: 7", "<<: {sede: 7}", 3, "sede: unknown key; did you mean 'seed'?"),
        (
            "best-mean",
            "best-meen",
            2,
            "objective: must be 'best-mean', 'best-duel', 'certify' or 'route' (got 'best-meen')",
        ),
        (
            "temperature: 1.0",
            "temperature: .nan",
            15,
            "generate_configs[1].temperature: must be a finite number",
        ),
        (
            "temperature: 1.0",
            'stop_seqs: [""]',
            15,
            "generate_configs[1].stop_seqs[0]: must not be empty (got '')",
        ),
        (
            "seed: 7\n",
            "seed: 7\nlookahead: many\n",
            4,
            "lookahead: must be a whole number (got 'many'); write a number of rounds, such as 2, or auto",
        ),
        (
            "seed: 7\n",
            "seed: 7\nexecution: {prices: {one: 3}}\n",
            4,
            "execution.prices.one: must be a mapping of keys to values (got 3); write one: {input: X,",
        ),
        (
            "seed: 7\n",
            "seed: 7\ngroups: lang\n",
            4,
            "groups: must be a mapping of keys to values (got 'lang'); write groups: {by: COLUMN}",
        ),
        (
            "seed: 7\n",
            "seed: 7\nmetrics: [{judge: exact}]\n",
            4,
            "metrics[0].name: is missing; add it, such as name: first",
        ),
        (
            "{max_tokens: 12}",
            "{}, model_args: {x: [{y: .nan}]}",
            5,
            "models[0].model_args.x: must be text, a finite number, true, false or null",
        ),
        (
            "{max_tokens: 12}",
            "{}, model_args: {x: .inf}",
            5,
            "models[0].model_args.x: must be text, a finite number, true, false or null (got",
        ),
        ("{type: contains}", "7", 17, "judge: must be a mapping of keys to values (got 7)"),
        ("{type: contains}", "{}", 17, "judge.type: is missing; add it"),
        (
            "seed: 7\n",
            "seed: 7\nsamples: four\n",
            4,
            "samples: must be a number of outputs, or a mapping with n and reduce (got 'four')",
        ),
        (
            "path: letters.jsonl",
            "path: letters.jsonl, sample: ten",
            16,
            "dataset.sample: must be a whole number of rows, or {n: ROWS, seed: SEED} (got 'ten')",
        ),
        (
            "seed: 7\n",
            "seed: 7\nexclude: [{}]\n",
            4,
            "exclude[0]: must name a model, a prompt, a guardrail or",
        ),
        ("name: smaller", "name: small", 4, "models: the name 'small' is used twice; every name"),
        ("name: asked", "name: plain", 9, "prompts: the name 'plain' is used twice; every name"),
        ("name: warm", "name: greedy", 13, "generate_configs: the name 'greedy' is used twice"),
        ("seed: 7", "name: 7", 3, "name: the key occurs twice (first in line 1); keep one"),
        ("name: greedy", "name: g, name: h", 14, "name: the key occurs twice (first in line 14)"),
        ("budget: 40", "budget: 7", 20, "stopping: the budget (7) is smaller than one round (batch_"),
        ("seed: 7", "seed: [7", 4, "not YAML: "),
        ("seed: 7", "seed: !!python/object:os.system x", 3, "not YAML: could not determine"),
        (
            '"Q {{ input }}:"',
            "{{ input }}",
            12,
            "prompts[1].template: a key must be plain text; put a value that begins",
        ),
        ("seed: 7", "seed: &x [*x]", None, "the values are nested too deeply"),
        ("seed: 7", "seed: " + "[" * 2000 + "]" * 2000, None, "the values are nested too deeply"),
    ],
)
def test_a_mistake_is_named_with_file_line_key_and_remedy(campaign_file, replace, by, line, said):
    where = "campaign.yaml" if line is None else f"campaign.yaml:{line}"
    assert complaint(campaign_file(replace, by)).startswith(f"{where}: {said}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("my run", "and no '.', '_' or '-' first; write my-run (got 'my run')"),
        ("_début!", "first; write d-but (got '_début!')"),
        ("'??'", "first (got '??')"),
        ("''", "must not be empty (got '')"),
        ("x" * 101, "is longer than 100 characters; shorten it (got"),
    ],
)
def test_a_name_that_is_none_is_answered_in_words_with_one_that_is(campaign_file, given, said):
    found = complaint(campaign_file("name: letters", f"name: {given}"))
    assert found.startswith("campaign.yaml:1: name: ")
    assert said in found
    assert "pattern" not in found


@pytest.mark.parametrize(
    ("section", "line", "part"),
    [("choices: {texts: [yes, no]}", 4, "choices.texts[0]"), ("tags: [on]", 4, "tags[0]")],
)
def test_a_text_that_yaml_reads_as_true_needs_quotes(campaign_file, section, line, part):
    path = campaign_file("seed: 7\n", f"seed: 7\n{section}\n")
    assert complaint(path).splitlines()[0] == (
        f"campaign.yaml:{line}: {part}: must be text (got true); put it in quotes; YAML "
        "reads yes, no, on and off without them as true and false"
    )


def test_a_number_where_a_text_belongs_needs_quotes_too(campaign_file):
    said = complaint(campaign_file("name: smaller", "name: 3"))
    assert said.endswith("models[1].name: must be text (got 3); put it in quotes")


MERGED = """\
x-small: &small
  provider: transformers
  generate_config: {max_tokens: 12, temperature: 0.5}
models:
  - &first {<<: *small, name: small, model: checkpoints/small}
  - {<<: *first, name: smaller, model: checkpoints/smaller, generate_config: {max_tokens: 3}}
  - <<: [{revision: main}, *small, {provider: vllm, revision: other}]
    name: third
    model: m
"""


def test_a_mapping_is_merged_into_others_which_may_say_otherwise(campaign_file, folder):
    text = (folder / campaign_file()).read_text()
    begin, end = text.index("models:"), text.index("prompts:")
    (folder / "merged.yaml").write_text(text[:begin] + MERGED + text[end:])
    models = load_spec("merged.yaml").models
    assert [each.name for each in models] == ["small", "smaller", "third"]
    assert [each.provider for each in models] == ["transformers"] * 3
    assert [each.revision for each in models] == [None, None, "main"]  # of a list, the first one
    assert [each.generate_config.max_tokens for each in models] == [12, 3, 12]
    assert models[1].generate_config.temperature == 0.0  # a mapping is merged, and not those in it
    folder.joinpath("wrong.yaml").write_text(text[:begin] + MERGED.replace("max_t", "maxi_t") + text[end:])
    said = complaint("wrong.yaml").splitlines()
    assert all(": unknown key; did you mean 'max_tokens'?" in each for each in said)
    assert [each.partition(": ")[0] for each in said] == [f"wrong.yaml:{n}" for n in (6, 9, 6)]


def test_a_key_in_quotes_merges_nothing(campaign_file):
    said = complaint(campaign_file("seed: 7", '"<<": {seed: 7}'))
    assert said.startswith("campaign.yaml:3: <<: unknown key; known here: ")


def test_what_is_there_to_be_merged_may_stand_by_itself(campaign_file):
    said = complaint(campaign_file("seed: 7", "defaults: &d {max_tokens: 3}"))
    assert said.endswith("; a mapping that others merge by << has a key such as x-base")
    assert load_spec(campaign_file("seed: 7", "seed: 7\nx-y: [1, 2]\nx-: 3")).seed == 7


HINTS = {
    "generate_configs[0].": {
        "stop until stops stop_sequences stop_strings stop_words": "'stop_seqs'",
        "max_new_tokens max_gen_toks max_completion_tokens num_predict maxTokens max-tokens": "'max_tokens'",
        "n num_samples num_return_sequences best_of repeats": "'samples' at the top of the file",
        "temperature_ temp Temperature do_sample": "'temperature'",
        "topP top-p": "'top_p'",
        "random_seed": "'seed' at the top of the file",
        "guided_json response_format": "'structured_output'",
    },
    "": {
        "prompt prompt_template": "'prompts'",
        "tests data examples": "'dataset'",
        "providers": "'models'",
        "n num_samples epochs": "'samples'",
        "stop until": "'stop_seqs' in generate_configs",
        "temperature temperature_": "'temperature' in generate_configs",
        "api_key": "'api_key' in models",
        "generation_kwargs": "'generate_configs'",
        "num_examples": "'dataset.limit'",
        "grader": "'judge'",
    },
    "models[0].": {
        "stop until": "'generate_config.stop_seqs'",
        "max_new_tokens max_tokens maxTokens": "'generate_config.max_tokens'",
        "temperature temperature_": "'generate_config.temperature'",
        "base_url url": "'model_base_url'",
        "id model_name": "'model'",
        "key": "'api_key'",
    },
    "prompts[0].": {
        "prompt text content": "'template'",
        "system_prompt": "'system'",
        "examples": "'few_shot'",
    },
    "dataset.": {"n max_samples": "'limit'", "file": "'path'"},
    "dataset.fields.": {"question prompt": "'input'", "answer expected": "'target'"},
    "stopping.": {"confidence": "'delta'", "max_evaluations": "'budget'"},
}


@pytest.mark.parametrize("part", HINTS)
def test_words_of_other_tools_are_answered_with_keys(campaign_file, part):
    path = campaign_file()
    for words, meant in HINTS[part].items():
        for word in words.split():
            said = complaint(path, [f"{part}{word}=1"])
            assert f"{part}{word}: unknown key; did you mean {meant}?" in said


def test_a_path_begins_in_the_home_folder(campaign_file, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder / "home"))
    path = campaign_file("path: letters.jsonl", "path: ~/d.jsonl", add="storage: sqlite:///~/results.db\n")
    values = {
        "models[0].model": "~/m",
        "history": "['~/h.csv', 'campaign:~x']",
        "execution.log_folder": "~/logs",
        "dataset.path": "['~/a.jsonl', b.jsonl]",
        "prompts[0].few_shot": "{n: 1, from: ~/shots.jsonl}",
    }
    home = f"{folder}/home"
    spec = load_spec(path)
    assert (spec.dataset.path, spec.storage) == (f"{home}/d.jsonl", f"sqlite:///{home}/results.db")
    spec = load_spec(path, [f"{key}={value}" for key, value in values.items()])
    assert (spec.models[0].model, spec.execution.log_folder) == (f"{home}/m", f"{home}/logs")
    assert spec.history == [f"{home}/h.csv", "campaign:~x"]
    assert spec.dataset.path == [f"{home}/a.jsonl", "b.jsonl"]
    assert spec.prompts[0].few_shot.source.path == f"{home}/shots.jsonl"
    (folder / "~").mkdir()
    assert load_spec(path).dataset.path == "~/d.jsonl"  # what is here is meant


def test_a_missing_key_is_named_at_the_nearest_line_there_is(campaign_file):
    assert "campaign.yaml:1: prompts: is missing; add it" in complaint(campaign_file("prompts:", "x-p:"))


def test_a_campaign_is_of_best_mean_without_an_objective(campaign_file):
    assert load_spec(campaign_file("objective: best-mean\n", "")) == load_spec(campaign_file("", ""))
    said = complaint(campaign_file("objective: best-mean\n", "prompt_type: kind\n"))
    assert "prompt_type: does not apply to best-mean; remove it, or write objective: route" in said


def test_of_a_missing_key_that_few_values_may_stand_under_these_are_told(campaign_file):
    others = [name for name in SELECTORS["best-mean"] if name not in {"champion", *BASELINES}]
    assert to_add("selector", {"objective": "best-mean"}) == (
        ", such as selector: {name: champion}; others for best-mean: "
        f"{', '.join(others)} (winnow selectors describes them)"
    )
    said = complaint(campaign_file("{name: ucb-e, params: {a: 1.0}}", "{}"))
    assert "selector.name: is missing; add it, such as name: champion; others for best-mean" in said
    said = complaint(campaign_file("judge: {type: contains}\n", ""))
    assert "judge: is missing; add it, such as judge: {type: normalised}; winnow judges lists all" in said


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, ", such as name: champion; others for best-mean: "),
        ({"objective": ["best-mean"]}, "; winnow selectors lists them"),
        ({"objective": "best"}, "; winnow selectors lists them"),
        ({"objective": "best-duel"}, ", such as name: llm-po; others for best-duel: "),
        ({"objective": "route"}, ", such as name: pak-ucb; others for route: "),
        ({"objective": "certify"}, ", such as name: r-eval; others for certify: "),
        ({"objective": "certify", "certify": 3}, ", such as name: r-eval; "),
        (
            {"objective": "certify", "certify": {"autoevaluator": {"prompt": "x"}}},
            ", such as name: r-autoeval-plus; ",
        ),
    ],
)
def test_the_selector_to_begin_with_follows_from_the_question(values, told):
    assert to_add("selector.name", values).startswith(told)


@pytest.mark.parametrize("objective", get_args(Objective))
def test_the_files_to_start_from_begin_with_the_selectors_that_are_told(objective):
    values = yaml.safe_load(starter(objective))
    first = values["selector"]["name"]
    assert to_add("selector.name", values).startswith(f", such as name: {first}; ")


def test_all_mistakes_are_told_at_once(campaign_file):
    said = complaint(campaign_file("{budget: 40, delta: 0.05}", "{budget: 0, delta: 1, zeta: 2}"))
    assert [line.partition(":20: ")[2].partition(":")[0] for line in said.splitlines()] == [
        "stopping.budget",
        "stopping.delta",
        "stopping.zeta",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "campaign.yaml is empty; write a campaign into it"),
        ("# a comment\n", "campaign.yaml is empty"),
        ("null\n", "campaign.yaml is empty"),
        ("- name: x\n", "campaign.yaml: a campaign file is a mapping of keys to values, this is a list"),
        ("letters\n", "campaign.yaml: a campaign file is a mapping of keys to values, this is the value"),
        ("a: 1\n---\nb: 2\n", "campaign.yaml:2: not YAML: but found another document"),
        ("a: \x01\n", "campaign.yaml: not YAML: "),
    ],
)
def test_a_file_that_holds_no_campaign_is_refused(folder, text, said):
    (folder / "campaign.yaml").write_text(text)
    assert complaint("campaign.yaml").startswith(said)


def test_a_file_that_cannot_be_read_is_refused(folder):
    assert complaint("campain.yaml") == f"there is no file campain.yaml (looked in {folder})"
    assert complaint("demo").endswith(
        f"(looked in {folder}); to resume a campaign of this name: winnow resume demo"
    )
    assert complaint("checkpoints") == "checkpoints is a folder; name a file"
    (folder / "latin.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    assert "latin.yaml cannot be read as text" in complaint("latin.yaml")
    assert complaint("latin.yaml").endswith("; save it as UTF-8")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("models:\n\t- a\n", "indent with spaces"),
        ("name: a\n---\nname: b\n", "a file contains one campaign: write each into a file of its own"),
        ("name: !!python/name:os.system x\n", "write plain values, without a tag"),
        ("name: *best\n", "put text that begins with * in quotes"),
    ],
)
def test_what_is_no_yaml_is_told_with_the_remedy_of_its_fault(folder, text, remedy):
    (folder / "campaign.yaml").write_text(text)
    assert complaint("campaign.yaml").endswith(f"; {remedy}")


@pytest.mark.parametrize(
    ("written", "number"), [("5e-2", 0.05), ("5E-2", 0.05), (".5e-1", 0.05), ("5.0e-2", 0.05)]
)
def test_numbers_with_an_exponent_are_numbers(campaign_file, written, number):
    assert load_spec(campaign_file("delta: 0.05", f"delta: {written}")).stopping.delta == number
    assert load_spec(campaign_file(), [f"stopping.delta={written}"]).stopping.delta == number


@pytest.mark.parametrize("revision", ["2024-01-02", "2024-13-45"])
def test_what_looks_like_a_date_stays_text(campaign_file, revision):
    path = campaign_file("name: smaller", f"name: smaller\n    revision: {revision}")
    assert load_spec(path).models[1].revision == revision
    assert load_spec(path, [f"models[1].revision={revision}"]).models[1].revision == revision


def test_overrides_take_the_place_of_the_files_values(campaign_file):
    spec = load_spec(
        campaign_file(),
        [
            "models[0].model=elsewhere",
            "stopping.budget=99",
            "stopping.delta=null",
            "execution.max_loaded=2",
            "prompts[1].template='{{ input }} = '",
            "judge={type: exact}",
            "storage=sqlite:///a=b.db",
        ],
    )
    assert spec.models[0].model == "elsewhere"
    assert spec.models[1].model == "checkpoints/smaller"
    assert (spec.stopping.budget, spec.stopping.delta) == (99, None)
    assert (spec.execution.max_loaded, spec.judge.type) == (2, "exact")
    assert (spec.prompts[1].template, spec.storage) == ("{{ input }} = ", "sqlite:///a=b.db")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("stopping.budget", "--set stopping.budget: write key=value, for example"),
        ("=3", "--set =3: write key=value"),
        ("models[7].model=x", "--set models[7].model=x: there is no place 'models[7].model' in the file"),
        (
            "stopping.budget.tokens=9",
            "--set stopping.budget.tokens=9: stopping.budget is 40, which has no tokens; set it as a whole: "
            "--set stopping.budget='{tokens: …}'",
        ),
        ("seed.a[0].b=9", "--set seed.a[0].b=9: seed is 7, which has no a[0].b; set it as a whole: "),
        ("models[0].model.x=3", "--set models[0].model.x=3: models[0].model is 'checkpoints/small', which"),
        ("models.small=3", "--set models.small=3: there is no place"),
        ("seed={", "--set seed={: the value is not YAML; put text in quotes"),
        ("seed={{ x }}", "--set seed={{ x }}: a key must be plain text; put a value that begins with '{{'"),
        ("seed={a: 1, a: 2}", "--set seed={a: 1, a: 2}: a: the key occurs twice"),
        ("stopping.budget=0", "--set stopping.budget: must be at least 1 (got 0)"),
        ("stopping={budget: 0}", "--set stopping.budget: must be at least 1 (got 0)"),
        ("stopping.bugdet=50", "--set stopping.bugdet: unknown key; did you mean 'budget'?"),
        ("stoping.budget=50", "--set stoping: unknown key; did you mean 'stopping'?"),
    ],
)
def test_a_bad_override_is_named_as_it_was_given(campaign_file, override, said):
    assert complaint(campaign_file(), [override]).startswith(said)


@given(st.lists(st.text("abz_-", min_size=1) | st.integers(0, 99), min_size=1))
def test_a_key_is_written_as_it_is_read(parts):
    assert parse_key(format_key(tuple(parts))) == tuple(parts)


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
SAMPLING = {
    "temperature": st.floats(0, 10),
    "top_p": st.floats(0, 1, exclude_min=True),
    "top_k": st.integers(0, 9),
    "max_tokens": st.integers(1, 9),
    "stop_seqs": st.lists(st.text(min_size=1), max_size=2),
}


JUDGES = st.dictionaries(st.sampled_from(["a", "b"]), SCALARS).map(lambda rest: {"type": "exact", **rest})
PARAMS = st.dictionaries(NAMES, SCALARS)
CONFIG = st.fixed_dictionaries({"name": NAMES}, optional=SAMPLING)


def named(least=1, **required):
    entry = st.fixed_dictionaries({"name": NAMES, **required}, optional={})
    return st.lists(entry, min_size=least, max_size=3, unique_by=lambda each: each["name"])


TEXT_PROMPT = {"name": NAMES, "template": st.just("{{ input }}")}
MESSAGES = [{"role": "user", "content": "{{ input }}"}, {"role": "assistant", "content": "A:"}]
PROMPT = st.fixed_dictionaries(
    TEXT_PROMPT, optional={"system": st.just("Be brief.")}
) | st.fixed_dictionaries({"name": NAMES, "messages": st.just(MESSAGES)})

SPECS = st.fixed_dictionaries(
    {
        "name": NAMES,
        "objective": st.just("best-mean"),
        "models": named(
            provider=st.just("transformers"),
            model=st.just("owner/name"),
            model_args=st.dictionaries(st.text(), SCALARS, max_size=2),
            chat=st.just(True),
            reasoning=st.none() | st.builds(dict, parser=st.just("think-tags"), begins_inside=st.booleans()),
            generate_config=st.fixed_dictionaries({}, optional=SAMPLING),
        ),
        "prompts": st.lists(PROMPT, min_size=2, max_size=3, unique_by=lambda each: each["name"]),
        "dataset": st.just({"path": "letters.jsonl"}),
        "judge": JUDGES,
        "selector": st.fixed_dictionaries({"name": NAMES}, optional={"params": PARAMS}),
        "stopping": st.fixed_dictionaries(
            {"budget": st.integers(32, 999)}, optional={"delta": st.none() | st.floats(0.01, 0.99)}
        ),
    },
    optional={
        "seed": st.integers(0, 2**63 - 1),
        "generate_configs": st.lists(CONFIG, max_size=3, unique_by=lambda each: each["name"]),
        "execution": st.fixed_dictionaries({}, optional={"group_size": st.integers(1, 9)}),
    },
)


LETTERS = Dataset(
    name="letters",
    path="letters.jsonl",
    examples=(Example(key="e0", fields={"input": "0 plus"}, targets=("a",)),),
    fingerprint="0" * 64,
)


@given(SPECS)
def test_a_spec_survives_being_stored(values):
    spec = CampaignSpec.model_validate(values)
    again = CampaignSpec.from_stored(spec.identity(), spec.execution_fields(), spec.storage)
    assert again == spec
    assert again.identity() == spec.identity()
    assert sampled(again) == sampled(spec)


def sampled(spec):
    """How each candidate samples: what a setting left out means must survive too."""
    return [(each.name, each.sampling) for each in build_candidates(spec, LETTERS)]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BOMB, "with every alias expanded, its values are larger than 16 MiB"),
        (f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 200)}]", "with every alias expanded"),
        ("a: &a [*a]", "nested too deeply"),
        (f"a: {'x' * 2**24}", "is larger than 16 MiB; move data to files"),
        ("[" * 5_000, "nested too deeply"),
    ],
)
def test_a_file_that_makes_much_of_little_is_refused(tmp_path, text, told):
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_spec_file(path)
    assert told in str(caught.value)


def test_so_is_such_a_value_of_a_setting(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text("a: 1")
    bomb = "{" + BOMB.replace("\n", ", ").replace(": &", ": &") + "}"
    with pytest.raises(SpecError, match="with every alias expanded"):
        read_spec_file(path, [f"a={bomb}"])


def test_aliases_may_repeat_what_is_short(tmp_path):
    path = tmp_path / "campaign.yaml"
    path.write_text("a: &a {x: [1, 2]}\nb: [*a, *a]")
    assert read_spec_file(path).values == {"a": {"x": [1, 2]}, "b": [{"x": [1, 2]}] * 2}


def test_traits_are_of_selectors_that_there_are():
    known = {name for names in SELECTORS.values() for name in names}
    traits = {name: value for name, value in vars(selector_traits).items() if name.isupper()}
    assert len(traits) >= 9
    for name, value in traits.items():
        assert known >= ({value} if isinstance(value, str) else {*value}), name


@pytest.mark.parametrize(
    ("replace", "by", "remedy"),
    [
        ("delta: 0.05", "delta: 5%", "must be a number (got '5%'); write 0.05"),
        ("delta: 0.05", "delta: '0.05'", "(got '0.05'); write 0.05 without quotes"),
        ("delta: 0.05", "delta: '0,05'", "(got '0,05'); write 0.05"),
        ("delta: 0.05", "delta: 95", "for 95% confidence write 0.05"),
        ("delta: 0.05", "delta: 5", "for 5% write 0.05"),
        (
            "delta: 0.05",
            "delta: 0",
            "must be greater than 0 (got 0); delta is the probability of a wrong answer",
        ),
        ("budget: 40", "budget: 1e3", "must be a whole number (got 1000.0); write 1000"),
        ("budget: 40", "budget: '1,000'", "(got '1,000'); write 1000"),
        ("budget: 40", "budget: 2k", "(got '2k'); write 2000"),
        ("budget: 40", "budget: '40'", "(got '40'); write 40 without quotes"),
        ("name: letters", "name:", "name: must be text (got nothing); write a value after the colon"),
        ("name: letters\n", "", "name: is missing; add it, such as name: my-campaign"),
        ("best-mean", "best-meen", "(got 'best-meen'); did you mean 'best-mean'?"),
    ],
)
def test_a_wrong_value_comes_with_the_right_one(campaign_file, replace, by, remedy):
    assert remedy in complaint(campaign_file(replace, by))


@pytest.mark.parametrize(
    ("override", "remedy"),
    [
        ("stopping=400", "write stopping: {budget: 400}"),
        ("models={big: {}}", "- {name: big, provider: openai, model: MODEL}"),
        ("tags=lang", "tags: must be a list (got 'lang'); write [lang]"),
    ],
)
def test_a_plain_value_in_the_place_of_a_mapping_comes_with_the_mapping(campaign_file, override, remedy):
    assert remedy in complaint(campaign_file(), [override])


@pytest.mark.parametrize(
    ("text", "line", "place", "word"),
    [
        ("a: 1\nb: \u201cexact\u201d\n", 2, "b", "exact"),
        ("judge: {type: \u2018exact\u2019}\n", 1, "judge.type", "exact"),
        ("a:\n  - \u00abd.jsonl\u00bb\n", 2, "a[0]", "d.jsonl"),
        ("a: {\u201etype\u201c: exact}\n", 1, "a", "type"),
        ("{\u201cname\u201d: 5}\n", 1, "", "name"),
        ("a: \u201d5\u201d\n", 1, "a", "5"),
    ],
)
def test_a_word_in_quotes_of_a_word_processor_is_told(tmp_path, text, line, place, word):
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    said = complaint(path)
    assert said.startswith(f"{path}:{line}: {place}: " if place else f"{path}:{line}: ")
    assert f'write "{word}" with straight quotes' in said


@pytest.mark.parametrize(
    "text", ["\u201cHello\u201d, {{ input }}", "\u201c{{ input }}\u201d", "\u201ca b\u201d"]
)
def test_text_that_quotes_in_typographic_quotes_stays_as_it_is(tmp_path, text):
    path = tmp_path / "campaign.yaml"
    path.write_text(f"a: {text if text[0] != '{' else repr(text)}\nb: '\u201cexact\u201d'\n")
    assert read_spec_file(path).values == {"a": text, "b": "\u201cexact\u201d"}


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("a:\n\t- 1\n", 2, "indent with spaces"),
        ("a:\n  - 1\n - 2\n", 3, "indent this line like the lines of the same list"),
        ("a: {b: 1\nc: 2}\n", 2, "close the quote or bracket before it"),
        ("a: 'x\nb: 1\n", 3, "close the quote or bracket (opened in line 1)"),
        ("a: b: c\n", 1, "put text that contains ': ' in quotes"),
        ("a: @x\n", 1, "put text that begins with this character in quotes"),
        ("a: *x\n", 1, "put text that begins with * in quotes"),
        ("a: {b: 1\n", 2, "close the bracket (opened in line 1)"),
        ('{"a": [1, 2', 1, "close the bracket"),
        ("a: {b: 1}}\n", 1, "remove this bracket, which has no opening bracket"),
        ("a: 1]\nb: [1]]\n", 2, "remove this bracket, which has no opening bracket"),
        ("a: {b: 1]\n", 1, "close { with }, and [ with ]"),
        ("a: [1, 2}\n", 1, "close { with }, and [ with ]"),
        ("a: [1,, 2]\n", 1, "remove one of the commas"),
    ],
)
def test_a_file_that_is_not_yaml_says_what_to_write(tmp_path, text, line, remedy):
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    said = complaint(path)
    assert said.startswith(f"{path}:{line}: not YAML: ")
    assert remedy in said


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        (
            "stopping",
            {"budget": -5},
            "write the maximum number of evaluations, such as 400, or remove budget",
        ),
        (
            "stopping",
            {"budget": "lots"},
            "write the maximum number of evaluations, such as 400, or remove budget",
        ),
        ("batch_size", 0, "write a number such as 32, or remove it"),
        ("seed", -1, "write a number such as 0, or remove it"),
        ("generate_configs", [{"name": "a", "temperature": "hot"}], "write a number such as 0.0"),
    ],
)
def test_a_number_that_cannot_be_is_answered_by_one_that_can(key, value, advice):
    with pytest.raises(SpecError, match=re.escape(advice)):
        parse_spec(SpecFile(Path("x.yaml"), {"name": "a", key: value}))


def test_data_given_as_a_campaign_is_called_data(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("text,label\nhello,a\n")
    with pytest.raises(
        SpecError,
        match=r"contains data, not a campaign; create a campaign's file: winnow init --data .*tickets\.csv",
    ):
        read_spec_file(str(path), [])


SHORT = """\
name: t
models:
  - {name: a, provider: openai, model: m, chat: true}
  - {name: b, provider: openai, model: n, chat: true}
prompts: ["Label: {{ text }}", "{{ text }}"]
dataset: {path: tickets.csv, fields: {input: text, target: label}}
judge: exact
stopping: {delta: 0.05, epsilon: 0.1}
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            ", target: label",
            "",
            "6: dataset.fields.target: tickets.csv, header: no target is named; which column holds the right "
            "answer? available: label; write fields: {target: COLUMN}",
        ),
        (
            "target: label",
            "target: txt",
            "6: dataset.fields.target: tickets.csv, header: unknown column 'txt'; available: label; name the "
            "column of the target: fields: {target: COLUMN}",
        ),
        (
            "- {name: a",
            "-{name: a",
            "3: not YAML: mapping values are not allowed here; put a space after the '-': - {name...",
        ),
        (
            "- {name: b",
            "-{name: b",
            "4: not YAML: expected <block end>, but found '?'; put a space after the '-': - {name...",
        ),
        (
            "name: b",
            "name: a",
            "2: models: the name 'a' is used twice; every name must be different (lines 3 and 4)",
        ),
        (
            "epsilon: 0.1",
            "epsilon: 5",
            "8: stopping.epsilon: must be less than 1 (got 5); for 5 points write 0.05",
        ),
        ("models:", "model:", "2: model: unknown key; did you mean 'models'?"),
        ("prompts:", "prompt:", "5: prompt: unknown key; did you mean 'prompts'?"),
        (
            "input: text, target: label",
            "input: label, target: text",
            "5: prompts[0].template: line 1 of the template: text is the target, which is never shown to a "
            "model; remove {{ text }}; if it is the input, exchange dataset.fields.input and "
            "dataset.fields.target",
        ),
    ],
)
def test_a_mistake_of_the_first_hour_is_one_line_with_its_remedy(tmp_path, monkeypatch, before, after, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abc***xyz")
    Path("tickets.csv").write_text("text,label\nmy parcel,shipping\na crash,bug\n")
    assert SHORT.count(before) == 1
    Path("c.yaml").write_text(SHORT)
    check_campaign_file(Path("c.yaml"))
    Path("c.yaml").write_text(SHORT.replace(before, after))
    with pytest.raises(SpecError) as refused:
        check_campaign_file(Path("c.yaml"))
    assert str(refused.value) == f"c.yaml:{said}"
