"""import scores, from files of other tools to an answer, a gate and outputs side by side."""

import json

import pytest
from campaign_processes import rows
from campaigns import status_json, winnow

pytestmark = pytest.mark.usefixtures("plain_runs")

N = 60
RIGHT = {"good": lambda at: at % 10 != 0, "bad": lambda at: at % 3 == 0}


@pytest.fixture
def results(tmp_path):
    """Results of promptfoo: two providers on `N` tests."""
    found = [
        {
            "testIdx": at,
            "promptIdx": 0,
            "provider": {"id": name},
            "vars": {"q": f"{at}+1?"},
            "prompt": {"raw": "{{q}}", "label": "p"},
            "response": {"output": f"{name} says {at}"},
            "success": right(at),
            "score": float(right(at)),
            "testCase": {"assert": [{"type": "equals", "value": at + 1}]},
        }
        for name, right in RIGHT.items()
        for at in range(N)
    ]
    (tmp_path / "results.json").write_text(
        json.dumps({"evalId": "e", "results": {"version": 3, "results": found}})
    )
    return tmp_path


def test_a_finished_run_becomes_a_campaign_that_others_take(results):
    told = winnow(results, "import", "scores", "results.json", "--name", "old")
    assert told.returncode == 0, told.stderr
    assert "read 2 candidates on 60 examples: 120 scores\n" in told.stdout
    assert "old: winner, exact" in told.stdout
    shown = status_json(results, "old")
    means = {each["name"]: each["estimate"] for each in shown["candidates"]}
    assert means == {name: pytest.approx(sum(map(right, range(N))) / N) for name, right in RIGHT.items()}
    assert "  again " not in told.stdout
    outputs = "SELECT text, outcome FROM v_comparisons WHERE example = '3' ORDER BY candidate"
    found = winnow(results, "query", "--sql", outputs, "--json")
    assert json.loads(found.stdout) == [
        {"text": "bad says 3", "outcome": 1.0},
        {"text": "good says 3", "outcome": 1.0},
    ]
    gate = winnow(results, "gate", "old.yaml", "--baseline", "good", "--fork", "gated")
    assert gate.returncode == 4, gate.stderr
    assert winnow(results, "import", "scores", "results.json", "--name", "old").returncode == 2
    assert rows(results, "SELECT count(*) FROM v_comparisons WHERE campaign = 'old'") == [(2 * N,)]


def test_a_candidate_keeps_its_name_and_another_that_loses_it_is_named(tmp_path):
    (tmp_path / "scores.csv").write_text("model,id,score\nm-4.1,1,1\nm-4-1,1,0\n模型,1,0\n")
    told = winnow(tmp_path, "import", "scores", "scores.csv", "--name", "s")
    assert "\nm-4-1-2 stands for candidate 'm-4.1'\ncandidate stands for candidate '模型'\n" in told.stdout
    assert "Use m-4-1-2: " in told.stdout


@pytest.mark.parametrize("range_", ["-inf,inf", "-1e308,1e308", "nan,1"])
def test_a_range_without_a_width_is_refused(range_, tmp_path):
    (tmp_path / "scores.csv").write_text("model,id,score\na,1,1\nb,1,0\n")
    told = winnow(tmp_path, "import", "scores", "scores.csv", "--name", "s", f"--range={range_}")
    assert told.returncode == 2
    assert "such as --range 1,5" in told.stderr
    assert not (tmp_path / "s.jsonl").exists()


def test_outputs_in_a_file_are_candidates_of_any_judge(tmp_path):
    lines = [
        "question,answer,old_answer,new_answer",
        *(f"{at}?,{at},{at * (at % 2)},{at}" for at in range(1, 40)),
    ]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "c.yaml").write_text(
        "name: systems\nobjective: best-mean\nmodels:\n"
        "  - {name: old, provider: recorded, output: old_answer}\n"
        "  - {name: new, provider: recorded, output: new_answer}\n"
        "dataset: {path: answers.csv, fields: {input: question, target: answer}}\njudge: normalised\n"
    )
    told = winnow(tmp_path, "run", "c.yaml")
    assert told.returncode == 0, told.stderr
    assert "winner       new" in told.stdout


def test_an_output_that_is_not_there_is_no_score(tmp_path):
    lines = [
        {"q": f"{at}?", "a": str(at), "outputs": {"x": str(at), **({"y": "?"} if at else {})}}
        for at in range(40)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "c.yaml").write_text(
        "name: part\nobjective: best-mean\nmodels:\n"
        "  - {name: x, provider: recorded, output: outputs.x}\n"
        "  - {name: y, provider: recorded, output: outputs.y}\n"
        "dataset: {path: d.jsonl, fields: {input: q, target: a}}\njudge: exact\n"
    )
    assert winnow(tmp_path, "run", "c.yaml").returncode == 0
    assert set(rows(tmp_path, "SELECT reason FROM v_comparisons WHERE outcome IS NULL")) <= {
        ("not_recorded",)
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--metric", "f1"], "have no metric 'f1'; choose one of success, score"),
        (["--range", "5"], "--range 5: write two numbers"),
        (["--format", "wandb"], "there is no format 'wandb'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(results, more, why):
    told = winnow(results, "import", "scores", "results.json", "--name", "old", *more)
    assert told.returncode == 2
    assert why in told.stderr
    assert not (results / "old.jsonl").exists()
