"""One model on two devices: as two engines that share its requests, and as one that is spread over both."""

import time
from contextlib import closing, nullcontext

from tests.gpu_check.site import Site, share_equal, texts_of
from tests.gpu_check.steps import Measured

ONE = "one device"
GROUPS, GROUP, TOKENS = 40, 256, 100


def replicas(site: Site, *, groups: int = GROUPS, group: int = GROUP, tokens: int = TOKENS) -> Measured:
    """How long groups of requests take on one device, and on two where the model may be loaded again."""
    if site.n_devices < 2:
        yield "one model on two devices", ONE
        return
    seconds: dict[int, float] = {}
    texts: dict[int, list[str]] = {}
    for count in (1, 2):
        seconds[count], texts[count], n_loads = _spread(site, count, groups, group, tokens)
        of = f"{groups * group} texts on {count} device{'s' * (count > 1)}"
        yield of, f"{seconds[count]:.1f} s from the first load to the last text, {n_loads} loads"
    yield (
        "two devices beside one",
        f"{seconds[1] / seconds[2]:.2f} times as fast; {share_equal(texts[1], texts[2])}",
    )


def _spread(site: Site, count: int, groups: int, group: int, tokens: int) -> tuple[float, list[str], int]:
    from winnow.tasks.engines.pool.pool import EnginePool
    from winnow.tasks.engines.pool.request_scheduler import RequestGroup
    from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
    from winnow.tasks.processes.fork_server import forking

    once = nullcontext()
    if site.provider == "vllm":
        once = forking(WORKER, log=site.logs / "imports.log", environment=WORKER_ENVIRONMENT)
    requests = site.requests(groups * group, tokens=tokens)
    asks = [
        RequestGroup(model=site.reference(), requests=requests[start : start + group])
        for start in range(0, len(requests), group)
    ]
    with once, EnginePool(log_folder=site.logs, devices=range(count)) as pool:
        started = time.perf_counter()
        with closing(pool.answers(asks)) as answered:
            by_number = {number: texts_of(answers) for number, answers in answered}
        seconds = time.perf_counter() - started
        texts = [text for number in sorted(by_number) for text in by_number[number]]
        return seconds, texts, len(pool.take_loads())


def tensor_parallel(site: Site) -> Measured:
    """vLLM with `tensor_parallel_size: 2`."""
    if site.n_devices < 2:
        yield "one model over two devices", ONE
        return
    requests = site.requests()
    with site.engine(devices=(0,)) as engine:
        alone = texts_of(engine.generate(requests))
    started = time.perf_counter()
    with site.engine({"tensor_parallel_size": 2}, devices=(0, 1)) as engine:
        spread = texts_of(engine.generate(requests))
        seconds = time.perf_counter() - started
    yield (
        "over two devices, until the first answers",
        f"{seconds:.1f} s; beside one: {share_equal(spread, alone)}",
    )
