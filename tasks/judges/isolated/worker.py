"""Process of an `IsolatedJudge`: receives the code to run, then one output per message."""

import contextlib
import resource
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from winnow.storage.json_types import JsonObject
from winnow.tasks.judges.protocol import INVALID_SCORE, InvalidScore, Sample, Verdict, checked_kind
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed, calling
from winnow.tasks.processes.worker_side import ParentLink, run_worker

Run = Callable[[Sample], Verdict]


def main(parent: ParentLink) -> None:
    """Load the code that the first message names, and judge the outputs in the others."""
    setup = parent.receive()
    plugin = Plugin(**setup["plugin"])
    try:
        with calling(plugin):
            run = _built(setup["build"], setup["params"])
    except PluginFailed as failed:
        parent.send(_failure(failed))
        return
    if setup["memory"] is not None:
        _limit_memory(setup["memory"])
    parent.send({"ready": True})
    while "sample" in (message := parent.receive()):
        with _killed_after(setup["processor_seconds"]):
            reply = _judged(run, plugin, Sample(**message["sample"]))
        parent.send(reply)


def _built(build: str, params: Mapping[str, object]) -> Run:
    module, _, attribute = build.partition(":")
    run: Run = getattr(import_module(module), attribute)(**params)
    return run


def _judged(run: Run, plugin: Plugin, sample: Sample) -> JsonObject:
    try:
        with calling(plugin, InvalidScore, MemoryError, RecursionError):
            return {"verdict": asdict(checked_kind(run(sample), Verdict))}
    except InvalidScore as error:
        return {"verdict": asdict(Verdict.unscored(INVALID_SCORE, detail=str(error)))}
    except (MemoryError, RecursionError) as error:
        return {"exhausted": f"raised {type(error).__name__}"}
    except PluginFailed as failed:
        return _failure(failed)


def _failure(failed: PluginFailed) -> JsonObject:
    return {"failed": failed.what, "raised_at": failed.raised_at, "traceback": failed.traceback}


def _limit_memory(most: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # some systems have no such file or limit
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + most, taken + most))


@contextlib.contextmanager
def _killed_after(seconds: float) -> Iterator[None]:
    """End this process after some seconds of processor time.

    The system enforces the limit. This works even if the parent was killed while a library held the
    interpreter's lock, which stops the thread that watches the parent.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


if __name__ == "__main__":
    run_worker(main)
