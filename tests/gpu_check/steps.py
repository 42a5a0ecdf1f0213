"""The rows that can be tried, each by a process of its own.

python -m tests.gpu_check.steps ROW    # a `Site` as JSON comes in; [what, measured] goes out, one a line
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from tests.gpu_check.machine import environment
from tests.gpu_check.site import PROVIDERS, Site
from tests.gpu_check.table import FAILED, Row

Measured = Iterator[tuple[str, str]]
"""What was tried, and what came of it."""

VLLM = ("vllm",)


class Step(NamedTuple):
    """One row, or some that need the same."""

    title: str
    function: str
    """"module:name" of a generator of `Measured`, given a `Site`."""
    providers: tuple[str, ...] = PROVIDERS


STEPS = {
    "campaign": Step(
        "the demo's campaign, killed and resumed, `streaming: off`", "campaigns:with_fixed_calls"
    ),
    "bfloat16": Step("the same in bfloat16", "campaigns:in_bfloat16"),
    "streamed": Step("the same as the demo has it, with streaming", "campaigns:streamed", VLLM),
    "loads": Step("loads: with its own imports, and forked from a process that has them", "loading:loads"),
    "refilled": Step("loads in one process that is emptied and filled again", "loading:refilled"),
    "beside": Step("two models on one device at once", "loading:beside"),
    "sleep": Step("sleep and wake, level 1, as Winnow does it", "sleeping:level_1"),
    "sleep-2": Step("sleep and wake, level 2, by plain calls of vLLM", "sleeping:level_2", VLLM),
    "lengths": Step(
        "texts of heavy-tailed lengths: barrier and `lookahead: auto`", "lengths:barrier_and_auto", VLLM
    ),
    "invariance": Step("equal texts alone, together and in other groups", "invariance:equal_texts"),
    "replicas": Step("one model on two devices", "spreading:replicas"),
    "tensor-parallel": Step("one model over two devices", "spreading:tensor_parallel", VLLM),
}


def tried(site: Site, name: str, *, limit: float, tell: Callable[[str], None]) -> list[Row]:
    """The rows of a step, each told as soon as it is known; the last one says so where it failed.

    Args:
        site: Where.
        name: A key of `STEPS`.
        limit: Seconds, after which its process is ended.
        tell: Gets each row as a line.
    """
    rows: list[Row] = []

    def take(what: str, measured: str) -> None:
        rows.append(Row(site.provider, name, what, measured))
        tell(rows[-1].line())

    site.logs.mkdir(parents=True, exist_ok=True)
    log = site.logs / f"{site.provider}-{name}.log"
    overdue = threading.Event()
    with log.open("ab") as errors, _process(site, name, errors) as process:
        timer = threading.Timer(limit, lambda: (overdue.set(), _end(process)))
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(site.as_json())
                process.stdin.close()
            for line in process.stdout:
                take(*json.loads(line))
            code = process.wait()
        finally:
            timer.cancel()
            _end(process)
    if overdue.is_set():
        take(STEPS[name].title, f"{FAILED}it was not done within {limit:g} s; see {log}")
    elif code != 0 and not (rows and rows[-1].is_failure):
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        take(STEPS[name].title, f"{FAILED}its process ended by {how}; see {log}")
    return rows


def _process(site: Site, name: str, errors: BinaryIO) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", __name__, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment(site.folder),
        start_new_session=True,
        text=True,
    )


def _end(process: "subprocess.Popen[str]") -> None:
    """End a process and its children; engines end with it by themselves."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def measure(site: Site, name: str) -> Measured:
    """What a step finds; an error becomes what is found last."""
    module, _, function = STEPS[name].function.partition(":")
    try:
        yield from getattr(importlib.import_module(f"tests.gpu_check.{module}"), function)(site)
    except Exception as error:
        traceback.print_exc()
        yield STEPS[name].title, FAILED + " ".join(f"{type(error).__name__}: {error}".split())[:400]


def main() -> None:
    """Measure what the command line names."""
    # Whatever else is printed, by libraries too, belongs into the log.
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    failed = False
    for what, measured in measure(Site.from_json(sys.stdin.read()), sys.argv[1]):
        failed = failed or measured.startswith(FAILED)
        print(json.dumps([what, measured]), file=rows, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
