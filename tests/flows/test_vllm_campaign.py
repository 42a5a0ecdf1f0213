"""Campaigns on a real vLLM engine: killed or cut off in the middle of them, and resumed.

Loading an engine takes far longer than these campaigns. So one that is loaded already answers whatever is not
itself about starting and ending engines.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import campaign_processes as processes
import duel_campaigns
import psutil
import pytest
from campaigns import winnow
from sqlalchemy import event
from sqlalchemy.orm import Session
from tiny_models import save_tiny_llama
from waiting import eventually
from without_prefect import COMMAND

from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm.engine import VllmEngine

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("plain_runs")]

MODEL_ARGS = {"max_model_len": 64, "dtype": "float32", "enforce_eager": True}

HALF_A_ROUND = """
    SELECT 1 FROM rounds r JOIN generations g ON g.round_id = r.id
    WHERE r.number > 0 AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.round_id = r.id)
"""


class LoadedEngine:
    """An engine that many campaigns ask one after the other, each of which may believe that it ends it."""

    engine = None

    @property
    def identity(self):
        return self.engine.identity

    def generate(self, requests):
        return self.engine.generate(requests)

    def close(self):
        pass


def start_loaded(model, settings):
    """The engine of the fixture `loaded`, whatever folder a campaign keeps its copy of the model in."""
    assert model.model_args == MODEL_ARGS
    return LoadedEngine()


@pytest.fixture(scope="module")
def engine(vllm_imports, tmp_path_factory):
    weights = save_tiny_llama(tmp_path_factory.mktemp("one"), seed=1)
    reference = ModelRef(name="one", provider="vllm", model=str(weights), model_args=MODEL_ARGS)
    with closing(VllmEngine(reference, EngineSettings(log_folder=tmp_path_factory.mktemp("logs")))) as engine:
        yield engine


@pytest.fixture
def loaded(engine, monkeypatch):
    """Have campaigns of this process use an engine that is loaded already."""
    monkeypatch.setattr(LoadedEngine, "engine", engine)
    monkeypatch.setitem(PROVIDERS, "vllm", "test_vllm_campaign:start_loaded")


def campaign(folder):
    """The usual campaign with one model, so that only one engine has to be loaded."""
    folder.mkdir()
    spec = processes.write_campaign(folder, provider="vllm")
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    spec.write_text(
        text.replace("max_model_len: 64", "max_model_len: 64, dtype: float32, enforce_eager: true")
    )
    return folder


def campaign_of_duels(folder):
    """One model, asked in two ways and sampled in two."""
    folder.mkdir()
    duel_campaigns.write_duels(
        folder,
        models=[{"name": "one", "provider": "vllm", "model": "model-1", "model_args": MODEL_ARGS}],
        prompts=[
            {"name": "plain", "template": "{{ input }}="},
            {"name": "shout", "template": "!{{ input }}!"},
        ],
    )
    return folder


def started(folder, *command):
    program = [sys.executable, "-c", COMMAND, *command]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / "told.txt").open("ab") as told:
        return subprocess.Popen(program, cwd=folder, env=environment, stderr=told, stdout=told)


def wait_for_decisions(folder, process, count):
    database = folder / "winnow.db"
    of_tables = "SELECT 1 FROM sqlite_master WHERE name = 'decisions'"
    while process.poll() is None and not (database.exists() and processes.rows(folder, of_tables)):
        time.sleep(0.1)
    with closing(sqlite3.connect(database)) as reader:
        while process.poll() is None:
            if len(reader.execute("SELECT 1 FROM decisions").fetchall()) >= count:
                return
            time.sleep(0.005)
    raise AssertionError(f"the campaign ended before it was killed: {(folder / 'told.txt').read_text()}")


def engines(folder):
    """Processes that have imported vLLM, engines or what they are forked from, and work in a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        is_worker = "winnow.tasks.engines.vllm.worker" in (process.info["cmdline"] or [])
        is_alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if is_worker and is_alive and process.info["cwd"] == str(folder):
            found.append(process)
    return found


def made(folder):
    return processes.rows(folder, "SELECT id, key, created_at FROM generations ORDER BY id")


@pytest.fixture
def resumed(tmp_path):
    """A campaign that was killed with all its engines at work, and then resumed."""
    folder = campaign(tmp_path / "killed")
    process = started(folder, "run", "campaign.yaml")
    wait_for_decisions(folder, process, 2)
    server, engine = sorted(engines(folder), key=psutil.Process.create_time)
    assert engine.ppid() == server.pid
    assert engine.cmdline() == server.cmdline(), "an engine was not forked"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < len(made(folder)) < processes.BUDGET
    assert eventually(lambda: not engines(folder), every_s=0.1), "a killed campaign leaves no engine behind"

    made_before = made(folder)
    assert winnow(folder, "resume", "survivor", "--storage", f"sqlite:///{folder}/winnow.db").returncode == 3
    assert not engines(folder)
    assert made(folder)[: len(made_before)] == made_before
    return folder


def test_kill_and_resume_on_vllm_is_like_an_uninterrupted_run(resumed, loaded, tmp_path):
    whole = campaign(tmp_path / "whole")
    assert winnow(whole, "run", "campaign.yaml").returncode == 3
    assert len({key for _, key, _ in made(resumed)}) == len(made(resumed)) == processes.BUDGET
    assert processes.history(resumed) == processes.history(whole)


@pytest.fixture
def cut_off(loaded, tmp_path, monkeypatch):
    """A whole campaign of duels, and what stood in its database once half of the second round was written."""
    whole, part = campaign_of_duels(tmp_path / "whole"), tmp_path / "part"

    def copy(session):
        database = whole / "winnow.db"
        if database.exists() and not part.exists() and processes.rows(whole, HALF_A_ROUND):
            shutil.copytree(whole, part)
            with (
                closing(sqlite3.connect(database)) as stored,
                closing(sqlite3.connect(part / "winnow.db")) as to,
            ):
                stored.backup(to)

    event.listen(Session, "after_commit", copy)
    result = winnow(whole, "run", "campaign.yaml")
    event.remove(Session, "after_commit", copy)
    assert result.returncode == 3, result.stderr
    return whole, part


def test_duels_on_vllm_that_were_cut_off_go_on_as_if_they_were_not(cut_off):
    whole, part = cut_off
    made_before = made(part)
    assert 0 < len(made_before) < len(made(whole))
    done = winnow(part, "resume", "survivor", "--trust", "--storage", f"sqlite:///{part}/winnow.db")
    assert done.returncode == 3, done.stderr
    assert made(part)[: len(made_before)] == made_before
    assert len({key for _, key, _ in made(part)}) == len(made(part))
    assert duel_campaigns.history(part) == duel_campaigns.history(whole)
    assert {each["outcome"] for each in duel_campaigns.duels(whole)} >= {0.0, 1.0}
