"""What loads cost: in fresh processes, in forked ones, and in one that is emptied and filled again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from unittest import mock

from tests.gpu_check.site import Site, gib, texts_of
from tests.gpu_check.steps import Measured

FORKED = "winnow.tasks.processes.worker_process.fork_worker"
NOT_FORKED = "started as a new process without the prepared imports"
"""How an engine's log begins where the fork server could not fork it."""
TIMES = 3


def loads(site: Site) -> Measured:
    """Engines one after the other: each with its own imports, and forked from a process that made them."""
    from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
    from winnow.tasks.processes.fork_server import forking

    if site.provider == "transformers":
        yield from _in_this_process(site)
        return
    with mock.patch(FORKED, return_value=None):
        seconds, texts = loaded(site)
    yield "a process with imports of its own, until its first answer", f"{seconds:.1f} s"
    with forking(WORKER, log=site.logs / "imports.log", environment=WORKER_ENVIRONMENT):
        for what in ("the first one that is forked, imports included", "the next one that is forked"):
            before = _said(site)
            seconds, again = loaded(site)
            said = _said(site)[len(before) :]
            if NOT_FORKED in said:
                why = said.partition(f"{NOT_FORKED}: ")[2].partition("\n")[0]
                raise RuntimeError(f"an engine could not be forked: {why} (it took {seconds:.1f} s)")
            if again != texts:
                raise RuntimeError("a forked engine writes other texts than one with imports of its own")
            yield what, f"{seconds:.1f} s, the same texts"


def _in_this_process(site: Site) -> Measured:
    import torch

    known: list[str] = []
    for number in range(1, TIMES + 1):
        seconds, texts = loaded(site)
        if known and texts != known:
            raise RuntimeError("the same model, loaded again, writes other texts")
        known = texts
        kept = torch.cuda.memory_allocated() / 2**20 if site.device == "cuda" else 0.0
        imports = ", imports included" if number == 1 else ""
        yield (
            f"load {number} in this process{imports}, until its first answer",
            f"{seconds:.2f} s, {kept:.0f} MiB still taken by tensors once it is closed",
        )


def loaded(site: Site) -> tuple[float, list[str]]:
    """Seconds until a new engine has answered, and what it wrote."""
    started = time.perf_counter()
    with site.engine() as engine:
        texts = texts_of(engine.generate(site.requests(4)))
        return time.perf_counter() - started, texts


REFILLED = """
import gc, json, sys, time
job = json.loads(sys.argv[1])
started = time.perf_counter()
import torch
from vllm import LLM, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory
print("ROW", json.dumps(["imports", time.perf_counter() - started, 0.0]), flush=True)
for number in range(job["times"]):
    started = time.perf_counter()
    llm = LLM(model=job["model"], **job["args"])
    llm.generate("1+1=", SamplingParams(max_tokens=4, temperature=0.0), use_tqdm=False)
    seconds = time.perf_counter() - started
    llm.llm_engine.engine_core.shutdown()
    del llm
    cleanup_dist_env_and_memory()
    gc.collect()
    free, total = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
    print("ROW", json.dumps(["load", seconds, (total - free) / 2**30]), flush=True)
"""


def refilled(site: Site) -> Measured:
    """Loads in one process, which Winnow does with Transformers alone: with vLLM by plain calls."""
    if site.provider == "transformers":
        yield "emptied and filled again", "the row loads is of one process already"
        return
    args = {"gpu_memory_utilization": 0.3} if site.device == "cuda" else {}
    given = {"enable_chunked_prefill": False} if site.device == "cpu" else {}
    job = {"times": TIMES, "model": str(site.checkpoint()), "args": {**site.model_args(), **args, **given}}
    for number, (what, seconds, taken) in enumerate(plain_vllm(REFILLED, job)):
        memory = f", {gib(taken if site.device == 'cuda' else None)} once it is closed" if number else ""
        yield f"plain vLLM in one process: {what}{f' {number}' if number else ''}", f"{seconds:.1f} s{memory}"


def plain_vllm(program: str, job: dict[str, object]) -> Iterator[list[object]]:
    """What a program prints behind "ROW", as JSON, as soon as it does, from a process of its own.

    Raises:
        RuntimeError: If it fails, with the last thing it said.
    """
    from winnow.tasks.engines.vllm import WORKER_ENVIRONMENT

    last = "nothing"
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(job)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**WORKER_ENVIRONMENT, **os.environ},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stderr.write(line)
            if line.startswith("ROW "):
                yield json.loads(line.removeprefix("ROW "))
            elif line.strip():
                last = line.strip()
    if process.returncode != 0:
        raise RuntimeError(f"plain vLLM ended with {process.returncode}: {last}")


def beside(site: Site) -> Measured:
    """Two engines of one device, begun at the same time, each with its share of the memory."""
    from winnow.tasks.engines.pool.loads_and_evictions import memory_share
    from winnow.tasks.engines.providers import start_engine
    from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
    from winnow.tasks.processes.fork_server import forking

    once = nullcontext()
    if site.provider == "vllm":
        once = forking(WORKER, log=site.logs / "imports.log", environment=WORKER_ENVIRONMENT)
    settings = site.settings(memory_share=memory_share(2, 0), devices=(0,))
    started = time.perf_counter()
    with once, ExitStack() as engines:
        both = [engines.enter_context(closing(start_engine(site.reference(), settings))) for _ in range(2)]
        first, second = (texts_of(each.generate(site.requests(8))) for each in both)
        seconds, taken = time.perf_counter() - started, gib(site.memory_used())
    if first != second:
        raise RuntimeError("the same model wrote other texts on the same device")
    yield "two engines begun at once on one device, until both have answered", f"{seconds:.1f} s, {taken}"


def _said(site: Site) -> str:
    log = site.logs / "measured.log"
    return log.read_text(errors="replace") if log.exists() else ""
