"""What commands do, as functions: plan, gate, simulate, rescore and label give what the commands print."""

import json
import subprocess
import sys

import people_campaigns as people
import pytest
import scripted_engines
from campaigns import winnow as run_command
from certify_campaigns import truth, wanted, write_certify
from scored_campaigns import write_scored

import winnow
from winnow.tasks.errors import DatasetError, SpecError, WinnowError

pytestmark = pytest.mark.usefixtures("plain_runs")


@pytest.fixture(autouse=True)
def scripted_models(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    scripted_engines.provide_all(monkeypatch)


def printed(folder, *words):
    return run_command(folder, *words).stdout.rstrip("\n")


CHAMPION = {"name": "champion"}


def test_a_plan_has_the_numbers_and_reads_as_the_command_prints_it(tmp_path):
    path = write_scored(tmp_path, ["knows", "guesses"], CHAMPION)
    options = ("--assume", "best=0.9,rest=0.1", "--seeds", "2", "--workers", "1", "--rate", "5")
    found = winnow.plan(path, assume={"best": 0.9, "rest": 0.1}, seeds=2, workers=1, rate=5)
    assert repr(found) == printed(tmp_path, "plan", "campaign.yaml", *options)
    assert (found.candidates, found.runs, found.right) == (2, 2, 2)
    assert winnow.Spec.from_file(path).plan(assume="best=0.9,rest=0.1", seeds=2, workers=1, rate=5) == found
    most = winnow.plan(write_gate(tmp_path))
    assert repr(most).splitlines()[0].endswith("upper bound for a run; no request was sent")
    with pytest.raises(SpecError, match="assume, table and like exclude each other; give one"):
        winnow.plan(path, assume="best=0.9,rest=0.1", like="first")


def test_what_validate_finds_is_there_as_fields_and_as_the_command_prints_it(tmp_path):
    path = write_scored(tmp_path, ["knows", "guesses"], CHAMPION)
    spec = winnow.Spec.from_file("campaign.yaml")
    found = spec.validate()
    assert repr(found) == printed(tmp_path, "validate", "campaign.yaml")
    assert found.name == "survivor"
    assert "2 candidates x 120 examples" in found.size
    assert spec.replace(seed=3).validate().source == "spec"
    assert path.exists()


def write_gate(folder, names=("slips", "knows", "guesses"), **changes):
    selector = {"name": "gate", "params": {"baseline": "slips/plain"}}
    return write_scored(folder, list(names), selector, **changes)


def test_a_gate_says_whether_it_passed_and_leaves_the_files_of_the_command(tmp_path):
    found = winnow.gate(write_gate(tmp_path), junit="gate.xml", markdown=tmp_path / "gate.md")
    assert (found.passed, found.exit_code, found.baseline) == (False, 4, "slips/plain")
    assert (found.no_worse, found.worse, found.open) == (("knows/plain",), ("guesses/plain",), ())
    assert repr(found).startswith("survivor: decided, proven\n")
    files = [(tmp_path / name).read_text() for name in ("gate.xml", "gate.md")]
    again = run_command(tmp_path, "gate", "campaign.yaml", "--junit", "again.xml", "--markdown", "again.md")
    assert again.returncode == 4
    assert [(tmp_path / name).read_text() for name in ("again.xml", "again.md")] == files
    assert winnow.open(f"sqlite:///{tmp_path}/winnow.db")["survivor"].answer == found.campaign.answer


def test_any_spec_is_a_gate_with_a_baseline_and_none_without_one(tmp_path):
    spec = winnow.Spec.from_file(write_scored(tmp_path, ["knows", "slips"], CHAMPION))
    with pytest.raises(SpecError, match="the file's selector is champion; name a candidate by --baseline"):
        winnow.gate(spec)
    with pytest.raises(WinnowError, match="there is no folder nowhere"):
        winnow.gate(spec, baseline="knows/plain", junit="nowhere/gate.xml")
    found = winnow.gate(
        spec.replace(stopping=winnow.Stopping(budget=24, delta=0.05, epsilon=0.1)), baseline="knows/plain"
    )
    assert (found.passed, found.exit_code, found.open) == (False, 3, ("slips/plain",))
    assert spec.selector.name == "champion"


TABLE = "candidate," + ",".join(f"e{i}" for i in range(40)) + "\n"
TABLE += "good," + ",".join("1" for _ in range(40)) + "\n" + "bad," + ",".join("0" for _ in range(40)) + "\n"


def test_a_simulation_has_its_runs_and_reads_as_the_command_prints_it(tmp_path):
    (tmp_path / "scores.csv").write_text(TABLE)
    selectors = ["champion", winnow.Selector(name="ucb-e", params={"a": 0.5})]
    found = winnow.simulate("scores.csv", selectors, budgets=[0.2, 40], seeds=2, workers=1)
    words = ("--selector", "champion", "--selector", "ucb-e:a=0.5", "--budgets", "0.2,40", "--seeds", "2")
    shown = run_command(tmp_path, "simulate", "scores.csv", *words, "--workers", "1", "--out", "out").stdout
    table, _, last = repr(found).rpartition("\n")
    assert shown.startswith(f"{table}\n{last}; runs in ")
    assert set(found.runs["selector"]) == {"champion", "ucb-e:a=0.5"}
    assert set(found.runs["best"].dropna()) == {"good"}
    as_json = json.loads(
        run_command(tmp_path, "simulate", "scores.csv", *words, "--out", "out", "--json").stdout
    )
    assert {**as_json, "files": []} == found.summary
    assert not (tmp_path / "curve.png").exists()
    with pytest.raises(SpecError, match=r"--budgets: 2.0 is 160 pairs; give 1 to 80"):
        winnow.simulate("scores.csv", "champion", budgets=[2.0])


def test_a_script_without_a_guard_for_its_processes_is_not_run_again_in_them(tmp_path):
    (tmp_path / "scores.csv").write_text(TABLE)
    (tmp_path / "script.py").write_text(
        "import winnow\n"
        "print('once', flush=True)\n"
        "found = winnow.simulate('scores.csv', ['champion'], budgets=[0.5], seeds=2, workers=2)\n"
        "print(len(found.runs))\n"
        "print(__file__.endswith('script.py'), __spec__)\n"
    )
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once\n2\nTrue None\n", "")


def test_outputs_are_judged_again_by_a_judge_that_a_program_gives(tmp_path):
    spec = winnow.Spec.from_file(write_scored(tmp_path, ["knows", "guesses"], CHAMPION))
    first = spec.replace(name="first", storage="sqlite:///winnow.db").run()
    assert first.answer.best == "knows/plain"
    opposite = winnow.Judge("regex", pattern="x(?#{target})")
    again = winnow.rescore("first", opposite, new_name="other", changes={"stopping.budget": 100})
    assert again.leaderboard().set_index("candidate").loc["guesses/plain", "estimate"] > 0
    (tmp_path / "judge.yaml").write_text("type: contains\n")
    by_file = winnow.rescore("first", "judge.yaml")
    assert repr(by_file) == "<Campaign 'first-rescored' in sqlite:///winnow.db>"
    by_name = winnow.rescore("first", "contains", new_name="by-name")
    assert by_name.leaderboard().equals(by_file.leaderboard())
    with pytest.raises(SpecError, match=r"rescore: judge.type: unknown judge 'contians'"):
        winnow.rescore("first", "contians", new_name="none")


def test_labels_are_stored_from_a_mapping_rows_a_frame_or_a_file(tmp_path):
    campaign = winnow.run(write_certify(tmp_path))
    storage = f"sqlite:///{tmp_path}/winnow.db"
    keys = wanted(tmp_path)
    assert campaign.answer.outcome == "waiting"
    answers = {key: truth(int(key[1:])) for key in keys}
    one, two, three, *rest = keys
    stored = winnow.label("survivor", {one: answers[one]}, storage=storage)
    assert (stored.new, stored.wanted) == (1, len(keys) - 1)
    rows = [{"id": two, "target": answers[two]}, {"id": three, "target": None}]
    stored = winnow.label("survivor", rows, storage=storage, annotator="Ann")
    assert (stored.new, stored.empty, stored.wanted) == (1, 1, len(keys) - 2)
    frame = campaign.view("labels")
    frame["target"] = [answers.get(key) for key in frame["id"]]
    stored = winnow.label("survivor", frame[frame["id"] != rest[0]], skip=[rest[0]], storage=storage)
    assert (stored.same, stored.new, stored.skipped, stored.wanted) == (2, len(keys) - 2, 1, 0)
    assert campaign.resume().answer.outcome == "waiting"
    with pytest.raises(WinnowError, match="labels, row 0: the dataset has no example 'e999'"):
        winnow.label("survivor", {"e999": "a"}, storage=storage)
    with pytest.raises(DatasetError, match=r"labels, row 0: .*target"):
        winnow.label("survivor", [{"id": "e1"}], storage=storage)
    for given, said in ((None, "nothing to store: give labels"), (7, "labels is a int; give a mapping")):
        with pytest.raises(SpecError, match=said):
            winnow.label("survivor", given, storage=storage)


def test_judgments_are_stored_for_a_campaign_that_people_judge(tmp_path):
    campaign = winnow.run(people.write_people(tmp_path, "best-mean"))
    tasks = campaign.view("labels")
    verdicts = {row.id: people.opinion(row._asdict()) for row in tasks.itertuples()}
    stored = winnow.label("survivor", verdicts, annotator="Ann")
    assert (stored.new, stored.wanted) == (len(tasks), 0)
    assert winnow.label("survivor", verdicts, annotator="Ann").same == len(tasks)
    with pytest.raises(SpecError, match="--skip is for labels of examples"):
        winnow.label("survivor", skip=["e1"])


COLUMNS = {"input": "candidate", "target": "e1"}
SERVED = {"models": ["gpt-x", "gpt-y"], "prompts": ["{{ candidate }}"]}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: winnow.plan("campaign.yaml", assume=7), "assume is 7; give means, such as {'best': 0.8"),
        (lambda: winnow.plan("campaign.yaml", seeds=0), "seeds is 0; give a whole number of at least 1"),
        (lambda: winnow.plan("campaign.yaml", rate="x"), "rate 'x': give a number of requests per second"),
        (lambda: winnow.plan("campaign.yaml", storage=3), "storage is 3; give the URL of a database"),
        (lambda: winnow.gate("campaign.yaml", baseline=7), "baseline is 7; give the name of a candidate"),
        (lambda: winnow.gate("campaign.yaml", baseline="a\0"), "baseline is 'a\\x00'; give the name of"),
        (lambda: winnow.Campaign("sqlite:///a.db", "a").report(7), "path is 7; give the path of a file"),
        (lambda: winnow.gate("campaign.yaml", junit=7), "junit is 7; give the path of a file"),
        (lambda: winnow.rescore("a", 7), "judge is 7; give a winnow.Judge, a judge's name, or a file"),
        (lambda: winnow.rescore("a", changes=["seed=1"]), "changes is ['seed=1']; give new values by dotted"),
        (lambda: winnow.label("a", {"b": "c"}, storage=None), "storage is None; give the URL of a database"),
        (lambda: winnow.simulate([[1.0]], "champion"), "table is [[1.0]]; give FILE.npz, FILE.csv"),
        (lambda: winnow.simulate("a.csv", None), "selectors is None; give a list of names"),
        (lambda: winnow.simulate("a.csv", [7]), "selectors is [7]; give a list of names"),
        (lambda: winnow.simulate("a.csv", []), "--selector: name a selector to compare"),
        (lambda: winnow.simulate("a.csv", "champion", seeds=0), "seeds is 0; give a whole number"),
        (lambda: winnow.simulate("a.csv", "champion", workers=0), "workers is 0; give a whole number"),
        (lambda: winnow.simulate("scores.csv", "champion", budgets=0.5), "budgets is 0.5; give shares or"),
        (lambda: winnow.compare(data=None, **SERVED), "data is None; give the path of a .csv"),
        (lambda: winnow.compare(data="a.csv", **SERVED, budget="x"), "budget is 'x'; give a whole number"),
        (lambda: winnow.compare(data="scores.csv", **SERVED, **COLUMNS, judge=7), "judge is 7; give a str"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind_are_refused_in_a_sentence(tmp_path, call, said):
    write_scored(tmp_path, ["knows", "guesses"], CHAMPION)
    (tmp_path / "scores.csv").write_text(TABLE)
    with pytest.raises(SpecError) as caught:
        call()
    assert str(caught.value).startswith(said)
