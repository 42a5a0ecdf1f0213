"""The same scores as Inspect, example by example: one campaign and one task of Inspect for each scorer.

python -m tests.benchmarks.inspect_peers --demo .winnow/demo --out .winnow/bench --inspect PYTHON

PYTHON is an interpreter with inspect-ai 0.3.285. The campaigns read the tasks by `task: {inspect: ...}` and
have two models answer: two of the demo's checkpoints on the CPU in float32, and where choices are asked for,
which these do not know, two scripted ones at a server of this machine, which also grades. Inspect is then
given the very texts, and compared are the messages that a model is shown and the score of every example.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.benchmarks.inspect_replay import CHOICES, GRADES, picked
from tests.benchmarks.peer_runs import run_campaign_file
from tests.benchmarks.tables import Row, told, write
from winnow.tasks.setup.load import check_campaign_file

HERE = Path(__file__).parent
TASKS = {"numbers": "match", "parts": "includes", "letters": "choice", "graded": "model_graded_qa"}
DEMO_MODELS = ("large", "sprout")
SCRIPTED = ("first", "second")
EXAMPLES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, default=Path(".winnow/demo"), help="folder `make demo` filled")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--inspect", type=Path, required=True, help="interpreter with inspect-ai")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="some of them")
    options = parser.parse_args()
    folder = options.out.absolute() / f"inspect-{datetime.now(UTC):%H%M%S}"
    folder.mkdir(parents=True)
    os.environ["DEMO"] = str(options.demo.absolute())
    os.environ["XDG_CONFIG_HOME"] = str(folder)  # where what is allowed here is remembered
    python = options.inspect.absolute()
    with scripted_server() as url:
        rows = told(compared(name, python, url, folder) for name in options.tasks)
    write("inspect", {"inspect": "Campaigns beside Inspect"}, {"inspect": rows}, folder)


def compared(name: str, python: Path, url: str, folder: Path) -> Row:
    """How often both agree on a task."""
    ours = campaign(name, python, url, folder)
    same_messages = same_scores = unscored = 0
    for model, examples in ours.items():
        theirs = replayed(name, model, examples, python, folder)
        for each in examples:
            found = theirs[each["id"]]
            same_messages += found["same_messages"]
            same_scores += found["score"] == each["score"]
            unscored += each["score"] is None
    total = sum(map(len, ours.values()))
    scores = [each["score"] for examples in ours.values() for each in examples if each["score"] is not None]
    return {
        "scorer": TASKS[name],
        "examples x models": f"{total // len(ours)} x {len(ours)}",
        "same messages": f"{same_messages} of {total}",
        "same score": f"{same_scores} of {total}",
        "mean score": f"{sum(scores) / len(scores):.3f}",
        "unscored by both": str(unscored),
    }


def campaign(name: str, python: Path, url: str, folder: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """`winnow run` on the whole grid: for each model the messages, texts and scores of all examples."""
    grader = {"name": "grader", "provider": "openai", "model": "grader", "model_base_url": url, "chat": True}
    spec = {
        "name": name,
        "objective": "best-mean",
        "storage": f"sqlite:///{folder}/{name}.db",
        "models": [model(each, url) for each in (SCRIPTED if name == "letters" else DEMO_MODELS)],
        "task": {
            "inspect": f"{HERE}/inspect_tasks.py@{name}",
            "args": {"n": EXAMPLES},
            "python": str(python),
            **({"grader": grader} if name == "graded" else {}),
        },
        "selector": {"name": "row-mean"},
        "batch_size": EXAMPLES,
        "stopping": {"budget": 2 * EXAMPLES},
        "fail_on_error": 1.0,
        "execution": {"max_loaded": 1, "log_folder": f"{folder}/logs"},
    }
    path = folder / f"{name}.yaml"
    run_campaign_file(spec, path)
    checked = check_campaign_file(str(path), approve=lambda file, spec: None)
    shown = {}
    for each in checked.dataset.examples:
        prompt = checked.candidates[0].prompt(each.fields, each.key)
        turns = [("user", prompt)] if isinstance(prompt, str) else [(one.role, one.content) for one in prompt]
        shown[each.key] = [list(turn) for turn in turns]
    return stored(folder / f"{name}.db", shown)


def stored(database: Path, shown: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What a campaign stored, by model."""
    query = (
        "SELECT k.name, e.key, g.text, c.outcome FROM comparisons c "
        "JOIN candidates k ON k.id = c.candidate_a_id JOIN examples e ON e.id = c.example_id "
        "JOIN generations g ON g.id = c.generation_a_id"
    )
    found: dict[str, list[dict[str, Any]]] = {}
    connection = sqlite3.connect(database)
    for who, key, text, score in connection.execute(query):
        row = {"id": key, "messages": shown[key], "text": text, "score": score}
        found.setdefault(who.partition("/")[0], []).append(row)
    connection.close()
    return found


def model(name: str, url: str) -> dict[str, Any]:
    """A candidate's model."""
    if name in SCRIPTED:
        return {"name": name, "provider": "openai", "model": name, "model_base_url": url, "chat": True}
    path = str(Path(os.environ["DEMO"]) / name)
    args = {"dtype": "float32", "device": "cpu"}
    return {"name": name, "provider": "transformers", "model": path, "model_args": args}


def replayed(
    name: str, model: str, examples: Sequence[Mapping[str, Any]], python: Path, folder: Path
) -> Mapping[str, Mapping[str, Any]]:
    """What Inspect says of the same texts, by example."""
    texts, scores = folder / f"{name}-{model}-texts.json", folder / f"{name}-{model}-scores.json"
    texts.write_text(json.dumps(list(examples)))
    command = [python, HERE / "inspect_replay.py", f"{HERE}/inspect_tasks.py@{name}", texts, scores]
    subprocess.run(
        [str(each) for each in command], check=True, env={**os.environ, "INSPECT_LOG_LEVEL": "error"}
    )
    found: Mapping[str, Mapping[str, Any]] = json.loads(scores.read_text())
    return found


@contextmanager
def scripted_server() -> Iterator[str]:
    """An OpenAI-compatible server of this machine, whose models choose and grade by the prompt's hash."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


class Scripted(BaseHTTPRequestHandler):
    """Answers chats."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model"} for name in (*SCRIPTED, "grader")]
        self._send({"object": "list", "data": models})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        is_grader = asked["model"] == "grader"
        text = picked(GRADES, prompt) if is_grader else picked(CHOICES, prompt, asked["model"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self._send(
            {
                "id": "1",
                "object": "chat.completion",
                "model": asked["model"],
                "choices": [choice],
                "usage": usage,
            }
        )

    def _send(self, content: Mapping[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    main()
