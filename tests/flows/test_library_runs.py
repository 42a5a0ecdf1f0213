"""`winnow.run` where programs call it: in a script, a thread, a running event loop, a cell of a notebook."""

import asyncio
import json
import os
import runpy
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from scripted_engines import ScriptedEngine, letter
from waiting import PATIENCE_S

import winnow
from winnow.algorithms.state import plugin_registry
from winnow.flows.prefect_support.server import CONNECTION_URL
from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.errors import SpecError, WinnowError

pytestmark = pytest.mark.usefixtures("prefect_api")

EXAMPLES = Path(__file__).parents[2] / "examples"


class Engine(ScriptedEngine):
    """One model is right about every number, the other about every second; a signal may come in between."""

    interrupts_at = None
    dies_at = 10_000
    batches = 0

    def __init__(self, model, settings):
        wrong_in = {"knows": 0, "guesses": 2}[model.name]
        super().__init__(lambda prompt: letter(prompt, wrong_in=wrong_in))

    def generate(self, requests):
        Engine.batches += 1
        if Engine.batches >= Engine.dies_at:
            raise EngineDied("any", "it was its time")
        if Engine.batches == Engine.interrupts_at:
            # To the thread that handles it: one that waits may not hear of what another one gets.
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return super().generate(requests)


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """A campaign as a program writes it, in a folder with all that it refers to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PROVIDERS, "scripted", f"{__name__}:Engine")
    monkeypatch.setattr(Engine, "batches", 0)
    monkeypatch.setattr(Engine, "interrupts_at", None)
    monkeypatch.setattr(Engine, "dies_at", 10_000)
    for name in ("knows", "guesses"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
    rows = [{"id": f"e{i}", "input": f"{i}", "target": letter(f"{i}", wrong_in=0)} for i in range(60)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "letters",
        "objective": "best-mean",
        "models": tuple(
            {"name": name, "provider": "scripted", "model": name} for name in ("knows", "guesses")
        ),
        "prompts": [{"name": "plain", "template": "{{ input }}"}],
        "dataset": {
            "path": tmp_path / "data.jsonl",
            "fields": {"id": "id", "input": "input", "target": "target"},
        },
        "judge": {"type": "exact"},
        "selector": {"name": "champion"},
        "batch_size": 8,
        "stopping": {"budget": 120, "delta": 0.05},
    }


def write_campaign(spec, folder, **changes):
    dataset = {**spec["dataset"], "path": "data.jsonl"}
    (folder / "campaign.yaml").write_text(json.dumps({**spec, "dataset": dataset, **changes}))


def is_the_answer(found):
    return found.answer.outcome == "winner" and found.answer.best == "knows/plain"


def test_a_script_gets_what_open_gives_and_a_second_call_asks_nothing(spec, capfd):
    found = winnow.run(spec, storage="sqlite:///mine.db")
    assert is_the_answer(found)
    stored = winnow.open("sqlite:///mine.db")["letters"]
    assert found.answer == stored.answer
    assert found.leaderboard().equals(stored.leaderboard())
    assert str(found).startswith("letters: winner, proven\nUse knows/plain: mean 1.000")
    shown = []
    found._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [str(stored)]
    asked = Engine.batches
    # The same campaign, though its numbers are NumPy's.
    stopping = {"budget": np.int64(120), "delta": np.float64(0.05)}
    again = {**spec, "batch_size": np.int32(8), "stopping": stopping}
    assert is_the_answer(winnow.run(again, storage="sqlite:///mine.db"))
    assert Engine.batches == asked > 0
    assert capfd.readouterr() == ("", "")


def test_a_stored_campaign_goes_on_without_its_file_on_what_may_change(spec):
    begun = winnow.run({**spec, "stopping": {"budget": 8, "delta": 0.05}})
    assert begun.answer.outcome == "undecided"
    stored = winnow.open("sqlite:///winnow.db")["letters"]
    assert not is_the_answer(stored.resume())
    assert is_the_answer(stored.resume({"stopping.budget": np.int64(120), "execution.group_size": 4}))
    asked = Engine.batches
    assert is_the_answer(stored.resume())
    assert Engine.batches == asked
    with pytest.raises(SpecError, match="seed: 0 -> 8\nundo the change, or give the campaign another name"):
        stored.resume({"seed": 8})


def test_engines_that_all_die_in_the_middle_decide_nothing_and_go_on_later(spec):
    """The reproduction: candidates were dropped one by one, and the last one was the winner, exact."""
    spec |= {"execution": {"max_restarts": 0}}
    Engine.dies_at = 3
    with pytest.raises(WinnowError, match=r"it was its time; no model of a remaining candidate is reachable"):
        winnow.run(spec)
    begun = winnow.open("sqlite:///winnow.db")["letters"]
    assert begun.answer.outcome is None
    assert {each.status for each in begun.answer.candidates} == {"active"}
    Engine.dies_at = 10_000
    assert is_the_answer(winnow.run(spec))
    assert begun.comparisons()["reason"].isna().all()


def test_progress_is_written_where_it_is_asked_for(spec, capfd):
    winnow.run(spec, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "round 1: 4 of 120 comparisons" in err


def test_a_file_runs_as_on_the_command_line(spec, tmp_path):
    write_campaign(spec, tmp_path, storage="sqlite:///other.db")
    assert is_the_answer(winnow.run("campaign.yaml"))
    assert list(winnow.open("sqlite:///other.db")) == ["letters"]


@pytest.fixture
def tables_of_prefect(prefect_api, tmp_path, monkeypatch):
    """A server that a test has started for itself finds its tables made, which takes five seconds."""
    made, database = Path(os.environ["PREFECT_HOME"]) / "prefect.db", tmp_path / "prefect.db"
    with closing(sqlite3.connect(made)) as source, closing(sqlite3.connect(database)) as to:
        source.backup(to)
    monkeypatch.setenv(CONNECTION_URL[0], f"sqlite+aiosqlite:///{database}")


def test_a_thread_runs_one(spec, tables_of_prefect):
    """A thread does not see the settings of another one, so that it has a server of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(winnow.run(spec)))
    thread.start()
    thread.join()
    assert is_the_answer(found[0])


CELLS = (
    f"import sys\nsys.path[:0] = {sys.path!r}",
    "import test_library_runs, winnow\n"
    "from winnow.tasks.engines.known_providers import PROVIDERS\n"
    'PROVIDERS["scripted"] = "test_library_runs:Engine"',
    'found = winnow.run("campaign.yaml")\nfound',
    "print(found.answer.outcome, found.answer.best)",
    'winnow.Spec.from_file("nowhere.yaml")',
    'winnow.open("sqlite:///nowhere.db")',
    'winnow.create_selector("nobody", n_arms=2, n_examples=2)',
    "print(winnow.Stopping(delta=0.05))\nwinnow.Stopping(delta=95)",
)
FAILING = 4
"""Of these, the last ones, which raise errors that a user can act on."""


def test_a_notebook_runs_one_and_shows_the_answer(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    write_campaign(spec, tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=PATIENCE_S, kernel_name="python3", allow_errors=True).execute()
    *_, shown, printed = notebook.cells[:-FAILING]
    assert "winner       knows/plain" in shown.outputs[-1]["data"]["text/plain"]
    assert printed.outputs[0]["text"] == "winner knows/plain\n"
    errors = [cell.outputs[-1] for cell in notebook.cells[-FAILING:]]
    blocks = [error["traceback"] for error in errors]
    assert [len(block) for block in blocks] == [1] * FAILING
    assert [block[0] for block in blocks] == [f"{error['ename']}: {error['evalue']}" for error in errors]
    names = ["SpecError", "StorageUnavailable", "UnknownSelector", "SpecMistakes"]
    assert [error["ename"] for error in errors] == names


async def call(spec):
    return winnow.run(spec)


@pytest.mark.parametrize("where", ["script", "loop"])
def test_an_interrupt_finishes_the_round_and_the_next_call_goes_on(spec, monkeypatch, where):
    def here():
        if where == "script":
            return winnow.run(spec)
        # Not asyncio.run, which takes the signal for itself; a notebook's kernel does not.
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(call(spec))
        finally:
            loop.close()

    monkeypatch.setattr(Engine, "interrupts_at", 1)
    with pytest.raises(KeyboardInterrupt):
        here()
    left = winnow.open("sqlite:///winnow.db")["letters"]
    assert left.answer.outcome is None
    before = left.comparisons()
    assert set(before["round"]) == {0}
    found = here()
    assert is_the_answer(found)
    assert found.comparisons().head(len(before)).equals(before)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("any_function.py", "'What is {}?' is best, proven"),
        ("own_pieces.py", "careful/plain proven"),
    ],
)
def test_a_script_of_the_examples_runs_as_it_stands(tmp_path, monkeypatch, capsys, name, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugin_registry, "_registered", {})
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.startswith(said)


def test_a_campaign_that_changed_takes_another_name_which_makes_no_text_a_second_time(spec):
    winnow.run(spec)
    with pytest.raises(SpecError, match=r"0 -> 9\nundo the change, or give the campaign another name; st"):
        winnow.run({**spec, "seed": 9})
    made = Engine.batches
    winnow.run({**spec, "name": "again"})
    assert Engine.batches == made


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sede", 7, "spec: sede: unknown key; did you mean 'seed'?"),
        ("storage", 7, "spec: storage: must be text (got 7)"),
        ("execution", {"log_folder": "/elsewhere"}, "pass trust=True if you know where it comes from"),
    ],
)
def test_what_cannot_run_is_said_in_a_sentence(spec, key, value, said):
    with pytest.raises(SpecError) as raised:
        winnow.run({**spec, key: value})
    assert said in str(raised.value)
