"""Sleep and wake of a model: level 1 moves the weights to the machine's memory, level 2 forgets them."""

import time
from collections.abc import Callable

from tests.gpu_check.loading import plain_vllm
from tests.gpu_check.site import Site, gib, texts_of
from tests.gpu_check.steps import Measured

NOT_HERE = "not here: this device has no memory that a sleeping model would give back"


def level_1(site: Site) -> Measured:
    """By the engine, as a campaign with `sleep: true` does it; level 2 it has not."""
    from winnow.tasks.engines.protocol import Sleeper

    if site.provider != "vllm":
        yield "sleep and wake", "not here: provider transformers does not sleep"
        return
    with site.engine(sleeps=True) as engine:
        before = texts_of(engine.generate(site.requests(16)))
        assert isinstance(engine, Sleeper)
        if not engine.can_sleep:
            yield "sleep and wake", NOT_HERE
            return
        yield "awake", gib(site.memory_used())
        seconds = _seconds(engine.sleep)
        yield "falls asleep (level 1)", f"{seconds:.2f} s, {gib(site.memory_used())}"
        seconds = _seconds(engine.wake)
        started = time.perf_counter()
        after = texts_of(engine.generate(site.requests(16)))
        if after != before:
            raise RuntimeError("it writes other texts once it has slept")
        answered = time.perf_counter() - started
        yield "wakes (level 1)", f"{seconds:.2f} s, the first answers {answered:.2f} s later, the same texts"


def _seconds(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


LEVEL_2 = """
import json, sys, time
job = json.loads(sys.argv[1])
import torch
from vllm import LLM, SamplingParams
llm = LLM(model=job["model"], enable_sleep_mode=True, gpu_memory_utilization=0.3, **job["args"])
asked = ["1+1=", "2+3=", "10+20="], SamplingParams(max_tokens=16, temperature=0.0)
texts = lambda: [each.outputs[0].text for each in llm.generate(*asked, use_tqdm=False)]
def told(what, call):
    started = time.perf_counter()
    call()
    seconds = time.perf_counter() - started
    free, total = torch.cuda.mem_get_info()
    print("ROW", json.dumps([what, seconds, (total - free) / 2**30]), flush=True)
before = texts()
told("falls asleep (level 2)", lambda: llm.sleep(level=2))
told("wakes for its weights", lambda: llm.wake_up(tags=["weights"]))
told("reads its weights again", lambda: llm.collective_rpc("reload_weights"))
told("wakes for its cache", lambda: llm.wake_up(tags=["kv_cache"]))
assert texts() == before, "it writes other texts once it has slept and read its weights again"
"""


def level_2(site: Site) -> Measured:
    """By plain calls of vLLM: Winnow has no use of it."""
    if site.device == "cpu":
        yield "sleep and wake, level 2", NOT_HERE
        return
    job = {"model": str(site.checkpoint()), "args": site.model_args()}
    for what, seconds, taken in plain_vllm(LEVEL_2, job):
        yield f"plain vLLM {what}", f"{seconds:.2f} s, {gib(float(str(taken)))}"
    yield "and then", "writes the same texts"
