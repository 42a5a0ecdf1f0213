"""`winnow simulate` as a user types it; the processes it starts are real."""

import contextlib
import io
import json
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from winnow.algorithms.registry import selector_names
from winnow.flows.api import simulations
from winnow.flows.main import main
from winnow.flows.simulate import report
from winnow.tasks.simulation import simulate as simulation


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def simulate(*arguments):
    """Run the command in this process: a new one would spend seconds on imports."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["winnow", "simulate", *arguments])
        patch.setenv("PYTHONSAFEPATH", "1")  # as the command does, and for no test behind this one
        with pytest.raises(SystemExit) as left:
            main()
    return Ran(left.value.code or 0, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    np.savez("steps.npz", scores=np.repeat([[0.0], [1.0], [0.5]], 10, axis=1), models=["low", "high", "mid"])


def test_a_table_is_replayed_and_written_down():
    selectors = ["--selector", "filled-subset:batch_size=3", "--selector", "ucb-e:a=0.5,batch_size=1"]
    options = ["--budgets", "2,0.1,1.0", "--seeds", "3", "--seed", "4", "--out", "results", "--workers", "2"]
    result = simulate("steps.npz", *selectors, *options)
    assert (result.returncode, result.stderr) == (0, "")
    runs = pd.read_parquet("results/runs.parquet")
    assert list(runs) == [
        "selector", "seed", "budget", "share", "spent", "best", "metric", "value", "is_estimate", "ended",
    ]  # fmt: skip
    assert runs.is_estimate.all()
    assert len(runs) == 2 * 3 * 3
    assert set(runs.metric) == {"accuracy"}
    assert sorted(set(runs.seed)) == [4, 5, 6]
    whole = runs[runs.selector == "filled-subset:batch_size=3"].groupby("budget")
    assert whole.spent.unique().map(list).to_dict() == {2: [0], 3: [3], 30: [30]}
    assert whole.best.unique().map(list).to_dict()[3] == ["high"]
    assert whole.best.count().to_dict() == {2: 0, 3: 3, 30: 3}  # nobody is recommended before the first batch
    assert whole.value.unique().map(list).to_dict() == {2: [0.0], 3: [1.0], 30: [1.0]}
    with open("results/curve.png", "rb") as picture:
        assert picture.read(8) == b"\x89PNG\r\n\x1a\n"
    assert result.stdout.startswith("steps.npz: 3 candidates x 10 examples, hardness 5\n")  # 1/1 + 1/0.25
    header, first, _ = result.stdout.splitlines()[1:4]
    assert header.split("  ")[0] == "selector"
    assert "2 (0.0667)" in header
    assert "reaches 0.95 at" in header
    assert first.split() == [
        "filled-subset:batch_size=3", "3", "0.000", "±0.000", "1.000", "±0.000", "1.000", "±0.000", "3",
    ]  # fmt: skip


def test_json_says_the_same_as_the_files():
    result = simulate(
        "steps.npz", "--selector", "row-mean:batch_size=1", "--budgets", "0.2,1.0", "--seeds", "4",
        "--metric", "ndcg", "--out", "results", "--json",
    )  # fmt: skip
    summary = json.loads(result.stdout)
    runs = pd.read_parquet("results/runs.parquet")
    (row,) = summary["selectors"]
    assert (summary["metric"], summary["budgets"], summary["target"]) == ("ndcg", [6, 30], 0.95)
    assert (summary["candidates"], summary["examples"], summary["hardness"]) == (3, 10, 5.0)
    by_budget = runs.groupby("budget").value
    assert row["means"] == pytest.approx(by_budget.mean().tolist())
    assert row["standard_errors"] == pytest.approx((by_budget.std() / 2).tolist())
    assert row["budget_to_target"] == (6 if row["means"][0] >= 0.95 else 30)
    assert row["means"][1] == 1.0


def test_one_run_has_no_standard_error():
    result = simulate("steps.npz", "--selector", "ucb-e", "--seeds", "1", "--out", "o", "--json")
    assert json.loads(result.stdout)["selectors"][0]["standard_errors"] is None


REFUSED = {
    "no table": (["none.npz"], "there is no file none.npz"),
    "no selector": (["--selector", "ucbe"], "--selector ucbe: no selector is called 'ucbe'"),
    "all of duels": (["--selector", "best-duel"], "--selector best-duel: no selector is called 'best-duel'"),
    "no value": (["--selector", "ucb-e:a"], "'a' is not key=value; for example ucb-e:a=0.5"),
    "bad delta": (["--delta", "0.95"], "--delta: delta is the probability of a wrong answer, not the conf"),
    "bad delta of one": (["--selector", "champion:delta=0.9"], "--selector champion:delta=0.9: delta is the"),
    "bad value": (["--selector", "ucb-e:a=x"], "a must be a number, got 'x'"),
    "budget of text": (["--budgets", "0.1,half"], "--budgets: 'half' is not a number"),
    "budget too large": (["--budgets", "31"], "--budgets: 31 is 31 pairs; give 1 to 30"),
    "budget too small": (["--budgets", "0.001"], "--budgets: 0.001 is 0 pairs"),
    "one beside shares": (["--budgets", "0.5, 1"], "1 is one of 30 pairs, but the others are shares"),
    "negative gap": (["--metric", "top1-eps", "--gap", "-1"], "--gap: gap must be non-negative"),
    "impossible level": (["--metric", "top1-mcnemar", "--level", "1"], "--level: level must be in (0, 1)"),
    "unused history": (["--history", "steps.npz"], "none of the selectors learns from a history"),
    "other examples": (["--history", "short.npz"], "short.npz has 1 examples, steps.npz has 10"),
    "the same as history": (
        ["--selector", "pulse", "--history", "same.csv"],
        "--history same.csv: it has 1 of the replayed candidates, such as 'mid', with the same sco",
    ),
    "two histories": (["--history", "a.csv", "--history-share", "0.5"], "exclude each other"),
    "too much history": (["--history-share", "0.9"], "leaves 0 of 3 candidates to compare and 3 as history"),
    "a file as folder": (["--out", "steps.npz"], "--out steps.npz cannot be created"),
    "one candidate": (["short.npz"], "short.npz has only one candidate"),
    "too little": (["thin.npz"], "candidate 'candidate-2' lacks 67% of its scores"),
}


@pytest.mark.parametrize(("changed", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_simulated_gets_one_sentence_and_no_files(changed, told, tmp_path):
    np.savez("short.npz", scores=[[1.0]])
    names = ",".join(map(str, range(10)))
    (tmp_path / "same.csv").write_text(f"m,{names}\nother{',1' * 10}\nmid{',0.5' * 9},\nlow{',1' * 10}\n")
    np.savez("thin.npz", scores=[[1.0, 1.0, 1.0], [np.nan, np.nan, 1.0]])
    table = [] if changed[0].startswith("--") else changed
    options = [] if table else changed
    given = {"--selector": "ucb-e", "--out": "results"}
    given.update(zip(options[::2], options[1::2], strict=True))
    result = simulate(*(table or ["steps.npz"]), *(word for pair in given.items() for word in pair))
    assert result.returncode == 2
    assert result.stderr.startswith("winnow: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list((tmp_path / "results").glob("*"))


def test_a_history_goes_by_examples_and_not_by_names_and_says_whom_it_knows(tmp_path):
    names = ",".join(map(str, range(10)))
    scores = f"{',1' * 10}\nother{',0.5' * 9},\n"
    (tmp_path / "mine.csv").write_text(f"m,{names}\nmid{scores}")
    (tmp_path / "else.csv").write_text(f"m,{names}\nold{scores}")
    options = ["--selector", "pulse", "--selector", "champion", "--budgets", "0.5", "--seeds", "2"]
    mine = simulate("steps.npz", *options, "--history", "mine.csv", "--out", "mine")
    others = simulate("steps.npz", *options, "--history", "else.csv", "--out", "else")
    assert (mine.returncode, others.returncode, others.stderr) == (0, 0, "")
    assert mine.stderr == (
        "--history mine.csv: it has 1 of the replayed candidates, such as 'mid', with other scores; "
        "selectors learn about the examples from these scores and ignore names, as in a campaign with this "
        "history\n"
    )
    runs = [pd.read_parquet(f"{folder}/runs.parquet") for folder in ("mine", "else")]
    pd.testing.assert_frame_equal(*runs)


def test_part_of_a_table_can_be_the_history_and_an_interrupt_leaves_no_files(monkeypatch, tmp_path):
    seen = {}

    def runs(environment, compared, **_):
        seen.update(scores=environment.scores, history=environment.history)
        raise KeyboardInterrupt
        yield

    learner = simulation.ComparedSelector(
        label="learner", selector="ucb-e", objective="best-mean", params={}, uses=frozenset({"history"})
    )
    monkeypatch.setattr(simulations, "compared_selector", lambda *_: learner)
    monkeypatch.setattr(simulations, "runs_of", runs)
    result = simulate("steps.npz", "--selector", "learner", "--history-share", "0.33", "--out", "results")
    assert (result.returncode, result.stderr) == (130, "stopped; nothing was written\n")
    assert not list((tmp_path / "results").iterdir())
    assert seen["history"].shape == (1, 10)
    together = np.concatenate([seen["scores"], seen["history"]])
    assert sorted(together[:, 0]) == [0.0, 0.5, 1.0]


def test_with_a_delta_a_picture_shows_when_all_stop_and_how_often_they_err(tmp_path):
    options = ["--delta", "0.2", "--seeds", "2", "--out", "results", "--workers", "1"]
    result = simulate("steps.npz", "--selector", "best-mean", *options)
    assert (result.returncode, result.stderr) == (0, "")
    assert "picture in results/curve.png, of stops in results/stops.png" in result.stdout
    assert (tmp_path / "results" / "stops.png").read_bytes()[:4] == b"\x89PNG"
    runs = pd.read_parquet("results/runs.parquet")
    assert set(runs.selector) == set(selector_names("best-mean"))
    assert runs.budget.max() == 30
    assert set(runs.ended) <= {"confident", "exhausted"}
    twice = simulate("steps.npz", "--selector", "ucb-e:delta=0.1", *options)
    assert twice.returncode == 2
    assert "delta is set by --delta for all; remove one" in twice.stderr


@pytest.mark.parametrize("scores", ["full", "open"])
def test_the_table_and_the_picture_say_of_the_same_runs_that_they_stopped(monkeypatch, scores):
    """Where scores are missing by which either of two may be ahead, all is asked and nothing known."""
    table = np.repeat([[0.0], [1.0], [1.0]], 10, axis=1)
    table[1:, :2] = np.nan if scores == "open" else 0.5
    np.savez("table.npz", scores=table)
    drawn = []
    monkeypatch.setattr(report, "save_stops", lambda _, found, **__: drawn.extend(found))
    options = ["--budgets", "3,30", "--seeds", "2", "--out", "o", "--workers", "1", "--json"]
    selectors = ["--selector", "row-mean:delta=0.05", "--selector", "ucb-e"]
    asked, not_asked = json.loads(simulate("table.npz", *selectors, *options).stdout)["selectors"]
    (stops,) = drawn
    stopped = 0 if scores == "open" else 2
    ended = pd.read_parquet("o/runs.parquet").groupby("selector").ended.unique().map(list)
    assert ended["row-mean:delta=0.05"] == ["exhausted" if scores == "open" else "confident"]
    assert (asked["stopped"], asked["wrong"]) == (f"{stopped} of 2", 0 if stopped else None)
    assert (asked["after"] is None) == (scores == "open")
    assert (stops.label, stops.n_stopped, stops.wrong) == ("row-mean:delta=0.05", stopped, 0)
    assert not_asked["stopped"] is None


def test_where_nobody_stops_the_table_says_so_and_no_picture_is_of_an_earlier_simulation(tmp_path):
    arguments = ["--selector", "row-mean", "--seeds", "2", "--out", "results", "--workers", "1"]
    result = simulate("steps.npz", *arguments, "--budgets", "3", "--delta", "0.05")
    header, line = result.stdout.splitlines()[1:3]
    assert header.split()[-1] == "stopped"
    assert line.endswith("0 of 2")
    assert "of stops in results/stops.png" in result.stdout
    (tmp_path / "results" / "own.txt").write_text("not ours")
    for name in ("picks.parquet", "picks.png"):
        (tmp_path / "results" / name).write_bytes(b"of an earlier one")
    simulate("steps.npz", *arguments, "--budgets", "3")
    left = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert left == ["curve.png", "own.txt", "runs.parquet"]


def test_without_stops_there_is_no_picture_of_them(tmp_path):
    result = simulate(
        "steps.npz", "--selector", "row-mean", "--seeds", "1", "--out", "results", "--workers", "1"
    )
    assert result.returncode == 0
    assert not (tmp_path / "results" / "stops.png").exists()
    assert "stops" not in result.stdout


def test_duels_are_simulated_on_a_table_of_preferences(tmp_path):
    rows = {"a": [0.5, 0.8, 0.9], "b": [0.2, 0.5, 0.7], "c": [0.1, 0.3, 0.5]}
    lines = ["name,a,b,c", *(f"{name},{','.join(map(str, row))}" for name, row in rows.items())]
    (tmp_path / "wins.csv").write_text("\n".join(lines))
    selectors = ["--selector", "llm-po:delta=0.05,batch_size=1", "--selector", "round-robin:batch_size=3"]
    options = ["--budgets", "10,500", "--seeds", "3", "--out", "results", "--workers", "1"]
    result = simulate("wins.csv", *selectors, *options)
    assert (result.returncode, result.stderr) == (0, "")
    assert "wins.csv: 3 candidates, best_wins 0.8" in result.stdout
    assert "3 of 3" in result.stdout
    runs = pd.read_parquet("results/runs.parquet")
    assert set(runs[runs.selector == "round-robin:batch_size=3"].ended) == {"budget"}
    assert set(runs[runs.budget == 500].best) == {"a"}
    assert (tmp_path / "results" / "curve.png").stat().st_size > 5_000


BAD_DUELS = {
    "shares": (["--budgets", "0.5"], "--budgets: '0.5' is not a number; for example 500,1000"),
    "metric": (["--metric", "ndcg"], "--metric ndcg is only for tables of scores"),
    "history": (["--history-share", "0.5"], "a simulation of duels uses no history"),
    "mixed": (
        ["--selector", "ucb-e"],
        "ucb-e is for best-mean, and llm-po is for best-duel: compare selectors of one objective",
    ),
    "contradiction": (
        ["b,0.3,0.5"],
        "'a' is preferred to 'b' at 0.8, 'b' to 'a' at 0.3; make the two add up",
    ),
    "shape": (["b,0.2,0.5", "c,0.1,0.1"], "has 3 rows and 2 columns of numbers"),
}


@pytest.mark.parametrize(("change", "told"), BAD_DUELS.values(), ids=BAD_DUELS)
def test_what_is_no_question_of_duels_is_refused(tmp_path, change, told):
    is_table = not change[0].startswith("--")
    rows = change if is_table else ["b,0.2,0.5"]
    (tmp_path / "wins.csv").write_text("\n".join(["name,a,b", "a,0.5,0.8", *rows]))
    options = [] if is_table else change
    result = simulate("wins.csv", "--selector", "llm-po", "--out", "results", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.fixture
def routed(tmp_path):
    """Two experts and one who scores 0.75 on everything, on examples of two types; vectors that tell them."""
    kinds = np.arange(40) % 2
    table = pd.DataFrame([kinds == 0, kinds == 1, np.full(40, 0.75)], dtype=float)
    table.columns = [f"e{i}" for i in range(40)]
    table.insert(0, "name", ["even", "odd", "both"])
    table.to_csv(tmp_path / "scores.csv", index=False)
    np.save(tmp_path / "vectors.npy", np.eye(2)[kinds])
    np.save(tmp_path / "types.npy", np.array([r"$\even$", "odd"])[kinds])  # no formula


ROUTES = [
    "scores.csv", "--contexts", "vectors.npy", "--selector", "pak-ucb:kernel=linear,eta=1",
    "--selector", "random", "--seeds", "2", "--workers", "1", "--out", "results",
]  # fmt: skip


@pytest.mark.usefixtures("routed")
def test_routes_are_simulated_beside_the_one_arm_oracle():
    result = simulate(*ROUTES, "--budgets", "0.5,40", "--types", "types.npy")
    assert (result.returncode, result.stderr) == (0, "")
    title, header, _, _, oracle, files = result.stdout.splitlines()
    assert title == "scores.csv: 3 candidates x 40 examples, best_mean 0.75, best_for_each 1"
    assert "reaches" not in header
    assert oracle.split() == ["oracle", "2", "0.000", "±0.000", "0.000", "±0.000"]
    assert files.endswith("candidates by type of prompt in results/picks.png")
    runs = pd.read_parquet("results/runs.parquet")
    assert set(runs.metric) == {"outscore-the-best"}
    assert set(runs[runs.selector == "oracle"].best) == {"both"}
    assert runs[(runs.selector.str.startswith("pak")) & (runs.budget == 40)].value.min() > 0.0
    picks = pd.read_parquet("results/picks.parquet")
    assert list(picks) == ["selector", "until", "type", "candidate", "share"]
    assert set(picks.selector) == {"pak-ucb:kernel=linear,eta=1", "random"}
    shares = picks.groupby(["selector", "until", "type", "candidate"]).share.sum()
    assert shares["pak-ucb:kernel=linear,eta=1", 36, "odd", "odd"] == 1.0
    assert shares.groupby(["selector", "until", "type"]).sum().tolist() == pytest.approx([1.0] * 2 * 10 * 2)
    for name in ("curve.png", "picks.png"):
        with open(f"results/{name}", "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n"


@pytest.mark.usefixtures("routed")
def test_regret_is_summed_up_over_prompts_and_has_no_target(tmp_path):
    summary = json.loads(simulate(*ROUTES, "--budgets", "20,40", "--metric", "regret", "--json").stdout)
    oracle = summary["selectors"][-1]
    assert (oracle["selector"], oracle["means"]) == ("oracle", [5.0, 10.0])
    assert (summary["target"], oracle["budget_to_target"]) == (None, None)
    assert summary["files"] == ["results/runs.parquet", "results/curve.png"]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["curve.png", "runs.parquet"]


BAD_ROUTES = {
    "no vectors": (["--contexts"], [], "give one of --contexts FILE, --embed TEMPLATE"),
    "two vectors": ([], ["--embed", "{{ input }}"], "give one of --contexts FILE, --embed TEMPLATE"),
    "embedded file": (["--contexts"], ["--embed", "x"], "scores.csv has only scores and no texts"),
    "history": ([], ["--history-share", "0.5"], "a simulation of routes uses no history"),
    "metric": (
        [],
        ["--metric", "ndcg"],
        "--metric ndcg is only for tables of scores; for routes choose one of",
    ),
    "budget": ([], ["--budgets", "41"], "--budgets: 41 is 41 prompts; give 1 to 40"),
    "types": ([], ["--types", "vectors.npy"], "needs shape (40,), a row for each example"),
    "mixed": (
        [],
        ["--selector", "ucb-e"],
        "ucb-e is for best-mean, and pak-ucb is for route: compare selectors of one objective",
    ),
    "parameter": ([], ["--selector", "random:dim=2"], "dim is set by --contexts or --embed; remove dim"),
}


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize(("without", "changed", "told"), BAD_ROUTES.values(), ids=BAD_ROUTES)
def test_what_cannot_be_routed_gets_one_sentence_and_no_files(without, changed, told, tmp_path):
    words = list(ROUTES)
    for option in without:
        del words[words.index(option) : words.index(option) + 2]
    result = simulate(*words, *changed)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list((tmp_path / "results").glob("*"))


@pytest.mark.usefixtures("routed")
def test_vectors_of_examples_are_for_routes_alone():
    result = simulate("steps.npz", "--selector", "ucb-e", "--out", "o", "--contexts", "vectors.npy")
    assert "--contexts, --embed and --types are for selectors that route" in result.stderr
