"""What a campaign of agents takes over the ideal, in which all places are busy from first to last.

python -m tests.benchmarks.agents --out .winnow/bench [--providers command http python] [--pause 0.2]

Four combinations of one agent that sleeps and fails in 8% of its runs, sixteen at once. The ideal is the sum
of the runs' own times, as they were measured, over sixteen; the rest is Winnow's and what stays idle.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import func, select

from tests.benchmarks.measurements import Measurement
from tests.benchmarks.tables import write
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database
from winnow.storage.models import Generation
from winnow.tasks.campaign.session import running
from winnow.tasks.objectives.runner import Runner
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign

AT_ONCE = 16
LOOKAHEAD = 3
"""Rounds in flight beside the first; on so few pairs "auto" has none, and places are idle as a round ends."""
TARGET = "at most 1.15"
TITLE = "Wall time of campaigns of agents over the ideal"

AGENT = """
import json, random, sys, time

def answer(example, params):
    chance = random.Random(f"{example['input']} {params}")
    time.sleep(PAUSE * chance.uniform(0.5, 1.5))
    if chance.random() < 0.08:
        raise RuntimeError("out of luck")
    right = chance.random() < 0.9 - 0.1 * params["k"]
    return example["target_"] if right else "wrong"

if __name__ == "__main__":
    message = json.load(sys.stdin)
    print(answer(message["example"], message["params"]))
"""


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, said = 200, str(self.server.answer(message["example"], message["params"]))  # type: ignore[attr-defined]
        except RuntimeError as error:
            status, said = 500, str(error)
        self.send_response(status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@contextmanager
def endpoint(folder: Path) -> Iterator[str]:
    """An endpoint that runs the function of the folder's file."""
    scope: dict[str, Any] = {"__name__": "agent"}
    exec((folder / "agent.py").read_text(), scope)
    with Server(("127.0.0.1", 0), Endpoint) as server:
        server.answer = scope["answer"]  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def over_ideal(folder: Path, own: dict[str, object], examples: int) -> tuple[float, int]:
    """Wall time over the ideal, and the number of runs."""
    rows = [
        {"input": f"{number}", "target_": f"{number}", "target": f"{number}"} for number in range(examples)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    entry = {
        "name": "agent",
        **own,
        "params": {"k": [0, 1, 2, 3]},
        "concurrency": AT_ONCE,
        "on_failure": "empty",
    }
    spec = {
        "name": "agents",
        "objective": "best-mean",
        "storage": f"sqlite:///{folder / 'winnow.db'}",
        "models": [entry],
        "dataset": str(folder / "data.jsonl"),
        "judge": "exact",
        "lookahead": LOOKAHEAD,
        "selector": {"name": "row-mean"},
        "stopping": {"budget": 4 * examples},
    }
    (folder / "campaign.yaml").write_text(yaml.safe_dump(spec))
    checked = check_campaign_file(str(folder / "campaign.yaml"))
    with closing(open_database(checked.spec.storage)) as database:
        ensure_schema(database)
        record = open_campaign(database, checked)
        started = time.perf_counter()
        with running(database, record, checked) as campaign, Runner(campaign) as runner:
            while not runner.run_round():
                pass
        wall = time.perf_counter() - started
        with database.reading() as session:
            total, runs = session.execute(select(func.sum(Generation.latency), func.count())).one()
    return wall / (total / AT_ONCE), runs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--providers", nargs="+", default=["command", "http", "python"])
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--examples", type=int, default=300)
    options = parser.parse_args()
    found: list[Measurement] = []
    for provider in options.providers:
        with tempfile.TemporaryDirectory(prefix="bench-agents-") as name:
            folder = Path(name)
            (folder / "agent.py").write_text(AGENT.replace("PAUSE", str(options.pause)))
            with endpoint(folder) as url:
                own: dict[str, object] = {
                    "command": {"provider": "command", "command": [sys.executable, str(folder / "agent.py")]},
                    "http": {"provider": "http", "url": url, "retries": 9, "retry_on": []},
                    "python": {"provider": "python", "function": f"{folder / 'agent.py'}:answer"},
                }[provider]
                share, runs = over_ideal(folder, own, options.examples)
        what = f"{provider}, {runs} runs of {options.pause:g} s on average, {AT_ONCE} at once"
        found.append(Measurement(what, f"{share:.2f}", TARGET))
        print(found[-1].line(), f"(load {os.getloadavg()[0]:.1f})", flush=True)
    write("agents", {"agents": TITLE}, {"agents": [each._asdict() for each in found]}, options.out)


if __name__ == "__main__":
    main()
