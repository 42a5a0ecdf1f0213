"""`winnow plan` as a user types it."""

import json
from pathlib import Path

import campaign_processes as processes
import pytest
import scripted_engines
from campaigns import one_message, winnow

ROWS = "".join(json.dumps({"id": f"e{i}", "input": f"{i}", "target": "a"}) + "\n" for i in range(40))
SPEC = """\
name: letters
objective: best-mean
storage: sqlite:///results.db
models:
  - {name: one, provider: transformers, model: one}
  - {name: two, provider: transformers, model: two}
prompts:
  - {name: plain, template: "{{ input }}="}
  - {name: asked, template: "Q {{ input }}:"}
dataset: {path: letters.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: contains}
selector: {name: champion}
stopping: {budget: 90, delta: 0.1}
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
    (tmp_path / "letters.jsonl").write_text(ROWS)
    (tmp_path / "campaign.yaml").write_text(SPEC)
    return tmp_path


QUICK = ("--seeds", "2", "--workers", "1")


def files(folder):
    """All but where every command has Prefect keep its own."""
    paths = (path.relative_to(folder) for path in Path(folder).rglob("*"))
    return sorted(str(path) for path in paths if path.parts[0] != ".winnow")


def test_it_says_what_a_campaign_takes_in_80_columns_and_writes_nothing(folder):
    before = files(folder)
    ran = winnow(folder, "plan", "campaign.yaml", *QUICK, "--assume", "best=0.9,rest=0.1", "--rate", "5")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert files(folder) == before
    assert max(map(len, ran.stdout.splitlines())) <= 80
    said = " ".join(ran.stdout.split())
    for part in (
        "4 candidates x 40 examples = 160 comparisons",
        "budget at most 90 comparisons",
        "scores of 0 and 1, the best mean 0.9, the others 0.1, failing independently",
        "2 of 2 runs within the budget, at error probability 0.1; 2 of 2 runs named the right winner",
        "prompts of 40 examples were rendered; no tokenizer is available for one, two, so 4 characters",
        "price unknown: add execution.prices for every model",
        "at 5 requests per second",
        "0.0250 on these examples, if all comparisons are made",
        "new examples with 40 examples and 4 candidates, a difference below ",
        " will probably not be shown on new examples; 2 points would need about ",
    ):
        assert part in said


def test_validate_says_what_can_be_shown_on_new_examples(folder):
    said = winnow(folder, "validate", "campaign.yaml").stdout
    assert "new examples: with 40 examples and 4 candidates, " in said
    assert "if two candidates disagree on 18% of the examples)" in said


def test_json_has_the_numbers(folder):
    text = (folder / "campaign.yaml").read_text() + "holdout: 0.25\n"
    (folder / "campaign.yaml").write_text(text)
    ran = winnow(folder, "plan", "campaign.yaml", *QUICK, "--json")
    found = json.loads(ran.stdout)
    assert (found["examples"], found["held_out"], found["limit"], found["grid"]) == (30, 10, 90, 120)
    assert found["expected"]["requests"] <= 90
    assert found["expected"]["hours"] is None


def test_a_table_takes_the_place_of_an_assumption(folder):
    names = ("one/plain", "one/asked", "two/plain", "two/asked")
    header = "candidate," + ",".join(f"e{i}" for i in range(40))
    lines = [f"{name}," + ",".join(["1" if k == 2 else "0"] * 40) for k, name in enumerate(names)]
    (folder / "scores.csv").write_text("\n".join([header, *lines]) + "\n")
    ran = winnow(folder, "plan", "campaign.yaml", *QUICK, "--table", "scores.csv")
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "scores.csv, 4 candidates x 40 examples, of these candidates" in said
    assert "2 of 2 runs named the right winner" in said


def test_what_the_file_says_by_names_of_candidates_is_played_as_the_campaign_does(folder):
    costs = "{one/plain: 1, one/asked: 2, two/plain: 3, two/asked: 4}"
    thrifty = f"selector={{name: champion, params: {{prefer: cost, costs: {costs}}}}}"
    ran = winnow(folder, "plan", "campaign.yaml", *QUICK, "--set", thrifty, "--set", "stopping.epsilon=0.2")
    assert ran.returncode == 0, ran.stderr
    assert "runs named the right winner, or one within 0.2 of it" in " ".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--assume", "best=0.9,rest=0.1", "--like", "x"), "exclude each other; give one"),
        (
            (
                *("--set", "selector={name: gate, params: {baseline: one/plain}}"),
                *("--assume", "best=0.9,rest=0.1"),
            ),
            "like apply to campaigns that look for the best mean",
        ),
        (("--rate", "0"), "rate 0: give a number of requests per second above 0"),
        (("--rate", "inf"), "rate inf: give a number of requests per second above 0"),
        (("--assume", "best=2,rest=1"), "with a number in [0, 1]"),
        (("--table", "none.csv"), "none.csv"),
        (("--like", "none"), "results.db"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(folder, options, message):
    ran = winnow(folder, "plan", "campaign.yaml", *options)
    assert ran.returncode in (1, 2)
    assert message in one_message(ran)


def test_of_a_gate_it_says_the_most_that_it_takes_and_what_it_cannot_foresee(folder):
    gate = ("--set", "selector={name: gate, params: {baseline: one/plain}}")
    ran = winnow(folder, "plan", "campaign.yaml", *gate, "--rate", "5")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert max(map(len, ran.stdout.splitlines())) <= 80
    said = " ".join(ran.stdout.split())
    for part in (
        "letters: upper bound for a run; no request was sent",
        "budget at most 90 comparisons",
        "requests 90 outputs of candidates",
        "hours 0.005, at 5 requests per second",
        "unforeseen the number of comparisons until the candidates are separated from the baseline",
    ):
        assert part in said
    ran = winnow(folder, "plan", "campaign.yaml", *gate, "--json")
    found = json.loads(ran.stdout)
    assert (found["limit"], found["unit"], found["most"]["hours"]) == (90, "comparisons", None)


@pytest.mark.usefixtures("plain_runs")
def test_a_stored_campaign_says_how_candidates_score_and_how_long_answers_are(tmp_path, monkeypatch):
    scripted_engines.provide(monkeypatch, "honest")
    processes.write_campaign(tmp_path, provider="honest")
    assert winnow(tmp_path, "run", "campaign.yaml").returncode == 3
    ran = winnow(tmp_path, "plan", "campaign.yaml", *QUICK, "--like", "survivor")
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "campaign:survivor, 6 candidates x 24 examples, of these candidates; 22% of its scores are" in said
    assert "and 32 of answers (as long as 32 stored outputs of these models" in said
    assert "hours 0, the whole budget 0, of engine time, measured on stored outputs of these models" in said


@pytest.mark.parametrize(("dtype", "is_told"), [("bfloat16", True), ("float32", False)])
def test_plan_and_validate_say_beforehand_that_a_run_may_not_be_had_again(folder, dtype, is_told):
    args = {"dtype": dtype, "device": "cpu"}
    models = [
        {"name": name, "provider": "transformers", "model": name, "model_args": args}
        for name in ("one", "two")
    ]
    given = ("--set", f"models={json.dumps(models)}")
    said = "outputs of transformers cpu bfloat16 can depend on what else is generated"
    validated = winnow(folder, "validate", "campaign.yaml", *given).stdout
    planned = " ".join(winnow(folder, "plan", "campaign.yaml", *QUICK, *given).stdout.split())
    assert (f"not exactly: {said}" in validated, said in planned) == (is_told, is_told)
    assert "repeatable:" in validated or not is_told


def test_plan_says_how_many_canary_prompts_servers_are_asked(folder):
    models = [
        {"name": name, "provider": "openai", "model": name, "model_base_url": "http://127.0.0.1:9/v1"}
        for name in ("one", "two")
    ]
    ran = winnow(folder, "plan", "campaign.yaml", *QUICK, "--set", f"models={json.dumps(models)}")
    said = " ".join(ran.stdout.split())
    assert "canaries 5 of 16 canary prompts for each of 2 served models, when a run begins" in said
