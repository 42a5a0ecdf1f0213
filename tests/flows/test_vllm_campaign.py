"""A campaign on real vLLM engines: killed with kill -9 in the middle of it, and resumed."""

import os
import re
import signal
import subprocess
import sys
import time

import campaign_processes as processes
import psutil
import pytest

pytestmark = pytest.mark.vllm


@pytest.fixture
def folder(tmp_path, prefect_api):
    return tmp_path


def campaign(folder):
    """The usual campaign with one model, so that only one engine has to be loaded."""
    folder.mkdir()
    spec = processes.write_campaign(folder, provider="vllm")
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    spec.write_text(text.replace("max_model_len: 64", "max_model_len: 64, dtype: float32"))
    return folder


def started(folder, *command):
    with (folder / "told.txt").open("ab") as told:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.main", *command], cwd=folder, stderr=told, stdout=told
        )


def wait_for_decisions(folder, process, count):
    while process.poll() is None:
        ready = (folder / "winnow.db").exists() and processes.rows(
            folder, "SELECT 1 FROM sqlite_master WHERE name = 'decisions'"
        )
        if ready and len(processes.rows(folder, "SELECT 1 FROM decisions")) >= count:
            return
        time.sleep(0.005)
    raise AssertionError(f"the campaign ended before it was killed: {(folder / 'told.txt').read_text()}")


def engines():
    """Command lines of vLLM workers that are alive."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if "tasks.engines.vllm_worker" in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return set(found)


def test_kill_and_resume_on_vllm_is_like_an_uninterrupted_run(folder):
    whole, killed = campaign(folder / "whole"), campaign(folder / "killed")
    before = engines()
    assert started(whole, "run", "campaign.yaml").wait(240) == 3
    assert engines() <= before

    process = started(killed, "run", "campaign.yaml")
    wait_for_decisions(killed, process, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    committed = set(processes.stored_texts(killed))
    assert 0 < len(committed) < processes.BUDGET
    deadline = time.monotonic() + 30
    while engines() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert engines() <= before, "a killed campaign leaves no engine behind"

    made_before = processes.rows(killed, "SELECT id, key, created_at FROM generations ORDER BY id")
    assert started(killed, "resume", "survivor", "--storage", f"sqlite:///{killed}/winnow.db").wait(240) == 3
    made_after = processes.rows(killed, "SELECT id, key, created_at FROM generations ORDER BY id")
    assert made_after[: len(made_before)] == made_before
    assert len({key for _, key, _ in made_after}) == len(made_after) == processes.BUDGET
    assert processes.history(killed) == processes.history(whole)
