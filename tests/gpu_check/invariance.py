"""Whether a text depends on what is written beside it: the same requests alone, together, in other groups."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.gpu_check.site import Site, share_equal, texts_of
from tests.gpu_check.steps import Measured

VARIABLE = "VLLM_BATCH_INVARIANT"
GROUP = 7
"""Requests of the other groups, in the other order."""


def equal_texts(site: Site) -> Measured:
    """Each precision, with and without vLLM's switch."""
    for dtype in ("float32", "bfloat16"):
        yield dtype, _shares(site, dtype)
        if site.provider != "vllm":
            continue
        if site.device == "cpu":
            yield f"{dtype}, {VARIABLE}=1", "not here: vLLM has it for GPUs"
            continue
        with switched_on():
            yield f"{dtype}, {VARIABLE}=1", _shares(site, dtype)


@contextmanager
def switched_on() -> Iterator[None]:
    """Have engines that start in the block be batch-invariant."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _shares(site: Site, dtype: str) -> str:
    requests = site.requests()
    with site.engine({"dtype": dtype}) as engine:
        together = texts_of(engine.generate(requests))
        alone = [texts_of(engine.generate([each]))[0] for each in requests]
        turned = requests[::-1]
        groups = [turned[start : start + GROUP] for start in range(0, len(turned), GROUP)]
        grouped = [text for group in groups for text in texts_of(engine.generate(group))][::-1]
        return (
            f"alone and together: {share_equal(alone, together)}; in groups of {GROUP} and together: "
            f"{share_equal(grouped, together)} ({engine.identity})"
        )
