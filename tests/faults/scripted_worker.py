"""The process behind `worker_engine`: it answers by a digest of each request, and meets faults on demand.

A fault is a file `fault.json` in the folder of the campaign: {"model": name, "at": "load" or "batch",
"number": n, "do": what, "times": how often}. Batches are counted over all processes of a model.
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from winnow.tasks.processes.worker_side import ParentLink, run_worker

PLAN = Path("fault.json")
LETTERS = "aeioustrn"
HUGE = 100_000_000
"""Characters of a text that no model would give."""


def main(parent: ParentLink) -> None:
    """Speak as `tasks.engines.vllm.worker` does."""
    name = parent.receive()["load"]["name"]
    if refused := _meet(parent, name, "load"):
        parent.send({"load_failed": refused})
        return
    parent.send({"ready": "worker 1", "at": time.time(), "waited": 0.0, "can_sleep": False})
    while "requests" in (message := parent.receive()):
        answers = [answer(name, request) for request in message["requests"]]
        spoilt = {
            None: {"answers": answers},
            "few": {"answers": answers[:-1]},
            "many": {"answers": answers + answers[:1]},
            "strangers": {"answers": [{"sentence": "no answer"} for _ in answers]},
            "huge": {"answers": [{**each, "text": "x" * HUGE} for each in answers]},
            "nothing": {"results": answers},
        }
        done = _meet(parent, name, "batch")
        if done in spoilt:
            parent.send({"number": message["number"], **spoilt[done]})


def _meet(parent: ParentLink, name: str, moment: str) -> str | None:
    """Meet the planned fault if this is its time; return how the answer is to be spoilt, None for not."""
    number = _count(f"{name}-{moment}")
    plan = json.loads(PLAN.read_text()) if PLAN.exists() else {}
    first = plan.get("number", 0)
    is_due = first <= number < first + plan.get("times", 1)
    if (plan.get("model"), plan.get("at")) != (name, moment) or not is_due:
        return None
    Path("met").write_text(str(os.getpid()))
    return MEETINGS[plan["do"]](parent)


def _count(what: str) -> int:
    path = Path(f"count-{what}")
    with path.open("a") as file:
        file.write(".")
    return path.stat().st_size


def _hang(parent: ParentLink) -> None:
    time.sleep(3600)


def _freeze(parent: ParentLink) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _kill(parent: ParentLink) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(parent: ParentLink) -> None:
    print("RuntimeError: CUDA error: device-side assert triggered", flush=True)
    os._exit(1)


def _garbage(parent: ParentLink) -> None:
    parent._channel._socket.sendall(b"\x00\xff{not json\n")


def _list(parent: ParentLink) -> None:
    parent._channel._socket.sendall(b"[1, 2, 3]\n")


def _memory(parent: ParentLink) -> str:
    return (
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
        "79.15 GiB of which 3.62 MiB is free."
    )


def _little_memory(parent: ParentLink) -> str:
    return (
        "ValueError: Free memory on device cuda:0 (1.05/79.15 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by "
        "other processes."
    )


MEETINGS: dict[str, Any] = {
    "hang": _hang,
    "freeze": _freeze,
    "kill": _kill,
    "leave": _leave,
    "garbage": _garbage,
    "list": _list,
    "memory": _memory,
    "little memory": _little_memory,
    "few": lambda parent: "few",
    "many": lambda parent: "many",
    "strangers": lambda parent: "strangers",
    "nothing": lambda parent: "nothing",
    "huge": lambda parent: "huge",
}


def answer(name: str, request: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps([name, request["prompt"], request["seed"]])
    digest = hashlib.sha256(content.encode()).digest()
    text = f"[[{'ABC'[digest[0] % 3]}]]" if name == "judge" else "".join(LETTERS[b % 9] for b in digest[:6])
    return {"text": text, "finish_reason": "stop", "input_tokens": 1, "output_tokens": 6, "seconds": 0.001}


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_worker(main)
