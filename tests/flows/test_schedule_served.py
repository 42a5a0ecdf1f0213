"""A schedule that is served from a terminal: it fires by itself, again and again, until Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import campaign_processes as processes
import psutil
import pytest
import work_pools
from campaigns import winnow
from faulty_server import faulty_server
from waiting import PATIENCE_S, until


@pytest.fixture
def server():
    with faulty_server() as server:
        yield server


def test_a_schedule_fires_twice_by_itself_and_the_second_campaign_reuses_the_first_ones_texts(
    prefect_api, server, tmp_path
):
    processes.have_served(processes.write_campaign(tmp_path), server.url)
    with served(tmp_path, "4") as (serving, out):
        until(lambda: len(made_anew(out.read_text())) >= 2)
        os.killpg(serving.pid, signal.SIGINT)  # as a terminal does: the command and what it runs
        assert serving.wait(PATIENCE_S) == 0
    told = out.read_text()
    assert made_anew(told)[:2] == [(processes.BUDGET, 0), (0, processes.BUDGET)]
    print(*(line for line in told.splitlines() if "new" in line), sep="\n")
    assert re.search(r"serving 'survivor': every 4 s; next run \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", told)
    assert "stop with Ctrl-C" in told
    assert told.rstrip().endswith("no campaign starts until the command runs again")
    assert is_paused("survivor")
    rows = json.loads(winnow(tmp_path, "query", "--series", "survivor", "--json").stdout)
    assert [(row["outcome"], row["changed"]) for row in rows[:2]] == [("undecided", None)] * 2
    assert all(re.fullmatch(r"survivor-\d{8}T\d{6}Z", row["campaign"]) for row in rows)


def test_ctrl_c_while_a_run_is_still_imported_ends_it_in_a_sentence(prefect_api, tmp_path):
    processes.write_campaign(tmp_path)
    with served(tmp_path, "4") as (serving, out):
        until(lambda: any(map(runs_a_flow, psutil.Process(serving.pid).children())), every_s=0.02)
        os.killpg(serving.pid, signal.SIGINT)
        assert serving.wait(PATIENCE_S) == 0
    told = out.read_text()
    assert "Traceback" not in told
    assert "stopping when the running campaign has finished its round" in told
    assert told.rstrip().endswith("stopped; no campaign starts until the command runs again")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_schedule_that_is_told_to_end_says_so_in_a_sentence(prefect_api, tmp_path, number):
    processes.write_campaign(tmp_path)
    with served(tmp_path, "86400") as (serving, out):
        until(lambda: "stop with Ctrl-C" in out.read_text() and catches(serving.pid, number))
        serving.send_signal(number)
        assert serving.wait(PATIENCE_S) == 0
    told = out.read_text()
    assert "Traceback" not in told
    assert told.rstrip().endswith("stopped; no campaign starts until the command runs again")
    assert len(told.splitlines()) < 8
    assert is_paused("survivor")  # so that a work pool may have its place


def test_a_schedule_whose_deployment_was_deleted_ends_in_a_sentence_too(prefect_api, tmp_path):
    processes.write_campaign(tmp_path)
    with served(tmp_path, "86400") as (serving, out):
        until(lambda: "stop with Ctrl-C" in out.read_text() and catches(serving.pid, signal.SIGTERM))
        with work_pools.client_of_prefect() as client:
            there = until(lambda: deployments_of(client, "survivor"))
            client.delete_deployment(there[0].id)
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(PATIENCE_S) == 0
    told = out.read_text()
    assert "Traceback" not in told
    assert told.rstrip().endswith("stopped; no campaign starts until the command runs again")


def deployments_of(client, name):
    """The deployments of this name that are not paused."""
    return [each for each in client.read_deployments() if each.name == name and not each.paused]


def is_paused(name):
    """Whether the schedule of this name fires no more until it is served again."""
    with work_pools.client_of_prefect() as client:
        return client.read_deployment_by_name(f"scheduled-campaign/{name}").paused


@contextmanager
def served(folder, interval):
    """The process that serves a folder's campaign every so many seconds, and the file of what it prints."""
    out = folder / "out"
    with out.open("wb") as output:
        serving = subprocess.Popen(
            [sys.executable, "-m", "winnow.flows.main", "schedule", "campaign.yaml", "--interval", interval],
            cwd=folder,
            env=work_pools.environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield serving, out
    finally:
        if serving.poll() is None:
            work_pools.kill(serving)


def runs_a_flow(process):
    """Whether a process is there for a flow run, however young it is."""
    try:
        return "prefect.engine" in process.cmdline()
    except psutil.Error:  # it has ended
        return False


def catches(pid, number):
    """Whether a process has a handler of its own for a signal."""
    (line,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(line, 16) >> (number - 1) & 1)


def made_anew(told):
    """(new, reused) of every campaign that was told of."""
    found = re.findall(r"(\d+) new generations?, (\d+) reused from other campaigns", told)
    return [(int(anew), int(taken)) for anew, taken in found]
