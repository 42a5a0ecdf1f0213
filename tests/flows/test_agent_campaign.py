"""Campaigns of agents: what they became, killed and resumed, and what was run how often."""

import json
import sys
import threading
from collections import Counter
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import campaign_processes as processes
import pytest
import yaml
from campaigns import one_message, rows, status_json, winnow
from waiting import PATIENCE_S, until

from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.factors import factor_tables

pytestmark = pytest.mark.usefixtures("plain_runs")

AGENT = """
import random, time
from pathlib import Path

def answer(example, params, seed):
    with Path(__file__).with_name("runs.txt").open("a") as file:
        file.write(f"{example['input']} {params['model']} {params['k']}\\n")
    chance = random.Random(f"{example['input']} {params}")
    if chance.random() < 0.08:
        raise RuntimeError("out of luck")
    time.sleep(PAUSE)
    right = chance.random() < {"good": 0.95, "poor": 0.5}[params["model"]] - 0.02 * params["k"]
    return {"output": str(sum(map(int, example["input"].split("+"))) + (not right)), "cost": 0.01,
            "metrics": {"steps": params["k"]}, "trace": f"tried {params['k']}"}
"""

PROGRAM = """
import json, sys
from agent import answer
message = json.load(sys.stdin)
print(json.dumps(answer(message["example"], message["params"], message["seed"])))
"""

OWN = {
    "http": {},
    "python": {"function": "agent.py:answer"},
    "command": {"command": [sys.executable, "program.py"]},
}


def write(folder, provider="python", *, pause=0.0, n=60, agent=(), **keys):
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(AGENT.replace("PAUSE", str(pause)))
    (folder / "program.py").write_text(PROGRAM)
    data = [{"input": f"{a}+{a * 7 % 50}", "target": str(a + a * 7 % 50)} for a in range(n)]
    (folder / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in data))
    entry = {"name": "agent", "provider": provider, **OWN[provider], "concurrency": 4}
    spec = {
        "name": "agents",
        "objective": "best-mean",
        "models": [{**entry, "params": {"model": ["good", "poor"], "k": [1, 2]}, **dict(agent)}],
        "dataset": "data.jsonl",
        "judge": "exact",
        "batch_size": 8,
        **keys,
    }
    (folder / "campaign.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def runs(folder):
    path = folder / "runs.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_campaign_of_agents_finds_the_best(tmp_path):
    folder = write(tmp_path, agent={"on_failure": "empty"})
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode == 0, ran.stderr
    found = rows(
        "sqlite:///" + str(folder / "winnow.db"),
        "SELECT c.name, g.text, g.reasoning, g.engine FROM comparisons x JOIN candidates c"
        " ON c.id = x.candidate_a_id JOIN generations g ON g.id = x.generation_a_id",
    )
    assert {name for name, *_ in found} <= {
        f"agent_model-{m}_k-{k}" for m in ("good", "poor") for k in (1, 2)
    }
    assert {trace.partition(" ")[0] for _, _, trace, _ in found} == {"tried", "agent_failed:"}
    assert {engine for *_, engine in found} == {"python agent.py:answer"}
    assert max(Counter(runs(folder)).values()) == 1
    assert "good" in status_json(folder, "agents")["best"]
    with (
        closing(open_database(f"sqlite:///{folder / 'winnow.db'}")) as database,
        database.reading() as session,
    ):
        tables = factor_tables(Look(session, campaign_records.find_campaign(session, "agents")))
        assert [(each.name, list(each.levels)) for each in tables.factors] == [
            ("params.model", ["good", "poor"]),
            ("params.k", ["1", "2"]),
        ]


def test_a_file_that_changed_is_another_agent(tmp_path):
    folder = write(tmp_path, stopping={"budget": 16})
    assert winnow(folder, "run", "campaign.yaml", "--trust").returncode in (0, 3)
    (folder / "agent.py").write_text((folder / "agent.py").read_text() + "\n")
    refused = winnow(folder, "run", "campaign.yaml", "--trust")
    assert "began with another definition" in one_message(refused)


def test_knobs_may_change_when_it_goes_on(tmp_path):
    folder = write(tmp_path, stopping={"budget": 16})
    winnow(folder, "run", "campaign.yaml", "--trust")
    write(tmp_path, stopping={"budget": 24}, agent={"concurrency": 2, "timeout": 9.0, "retries": 0})
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    assert max(Counter(runs(folder)).values()) == 1


def test_nothing_runs_without_permission(tmp_path):
    for provider, act in (("python", "run 'answer' of the Python file"), ("command", "run the command")):
        folder = write(tmp_path / provider, provider)
        assert act in one_message(winnow(folder, "run", "campaign.yaml"))
        assert not runs(folder)


class Endpoint(BaseHTTPRequestHandler):
    """The same agent behind HTTP."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, said = 200, self.server.answer(message["example"], message["params"], message["seed"])
        except RuntimeError as error:
            status, said = 500, {"error": str(error)}
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint(tmp_path):
    """The URL of an endpoint that runs the function of the folder's file."""
    write(tmp_path, pause=PAUSE)
    scope = {"__file__": str(tmp_path / "agent.py")}
    exec((tmp_path / "agent.py").read_text(), scope)

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Endpoint) as server:
        server.daemon_threads, server.answer = True, scope["answer"]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def forks():
    return processes.fork_server()


PAUSE = 0.02
AT_ONCE = 16


@pytest.mark.parametrize("lookahead", [0, 2])
@pytest.mark.parametrize("provider", ["command", "http", "python"])
def test_kills_lose_what_is_in_flight_alone(forks, tmp_path, monkeypatch, request, provider, lookahead):
    """Sixteen at once, 8% of which fail; killed twice, the campaign decides as if it never was."""
    monkeypatch.chdir(tmp_path)
    own = {
        "command": {"command": [sys.executable, str(tmp_path / "program.py")]},
        "python": {"function": f"{tmp_path / 'agent.py'}:answer"},
    }
    if provider == "http":  # a connection that the system drops is tried again, a failed run is not
        own["http"] = {"url": request.getfixturevalue("endpoint"), "retries": 9, "retry_on": []}
    written = write(
        tmp_path,
        provider,
        pause=PAUSE,
        agent={**own[provider], "on_failure": "empty", "concurrency": AT_ONCE},
        name="survivor",
        lookahead=lookahead,
        storage=f"sqlite:///{tmp_path / 'winnow.db'}",
        stopping={"budget": {"comparisons": 160, "cost": 1.2}, "delta": 0.05},
    )
    histories = []
    for kills in ((), (20, 40)):
        for left in (*tmp_path.glob("winnow.db*"), *tmp_path.glob("runs.txt")):
            left.unlink()
        storage = processes.store(written / "campaign.yaml", is_trusted=True)
        for after in kills:
            wanted = len(runs(tmp_path)) + after
            process = processes.start(forks, tmp_path, storage)
            until(
                lambda process=process, wanted=wanted: len(runs(tmp_path)) >= wanted or not process.is_alive()
            )
            process.kill()
            process.join(PATIENCE_S)
        process = processes.start(forks, tmp_path, storage)
        process.join(PATIENCE_S)
        assert process.exitcode == 0
        histories.append(processes.history(tmp_path))
        again = sum(count - 1 for count in Counter(runs(tmp_path)).values())
        assert again <= AT_ONCE * len(kills), "more was run again than was in flight"
    assert histories[0] == histories[1]
    assert len(histories[0]["comparisons"]) >= 60


def test_what_agents_report_bounds_them_and_is_their_cost(tmp_path):
    """The better agent takes more steps than it may; each run costs a cent."""
    steps = {"type": "reported", "number": "steps", "range": [0, 4]}
    folder = write(
        tmp_path,
        n=40,
        agent={"on_failure": "empty", "params": {"model": ["good", "poor"], "k": [1, 3]}},
        metrics=[{"name": "steps", "judge": steps}],
        constraints=[{"metric": "steps", "at_most": 0.5}],
        stopping={"delta": 0.05, "budget": 160},
    )
    (folder / "agent.py").write_text((folder / "agent.py").read_text().replace("< 0.08", "< 0.0"))
    ran = winnow(folder, "run", "campaign.yaml", "--trust")
    assert ran.returncode in (0, 3), ran.stderr
    found = status_json(folder, "agents")
    statuses = {each["name"]: each["status"] for each in found["candidates"]}
    assert found["best"] == "agent_model-good_k-1"
    assert statuses["agent_model-good_k-3"] in ("infeasible", "unfit")
    assert found["price"] == pytest.approx(0.01 * found["totals"]["generations"])
    shown = winnow(folder, "query", "agents", "pareto", "--json")
    assert {round(row["cost"], 6) for row in json.loads(shown.stdout)} == {10.0}
    assert winnow(folder, "db", "check").returncode == 0


def test_a_limit_on_costs_is_kept_by_what_agents_report(tmp_path):
    folder = write(tmp_path, stopping={"budget": {"cost": 0.3}, "delta": 0.05}, agent={"on_failure": "empty"})
    assert winnow(folder, "run", "campaign.yaml", "--trust").returncode in (0, 3)
    found = status_json(folder, "agents")
    assert 0.3 <= found["price"] <= 0.3 + 0.01 * 16  # a round is finished
    silent = (folder / "agent.py").read_text().replace('"cost": 0.01,', "")
    (folder / "agent.py").write_text(silent)
    winnow(folder, "run", "campaign.yaml", "--trust", "--fork", "silent")
    reasons = {
        row["reason"] for row in json.loads(winnow(folder, "query", "silent", "coverage", "--json").stdout)
    }
    assert "no_cost" in reasons
