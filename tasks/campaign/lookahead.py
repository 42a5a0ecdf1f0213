"""How many requests engines work on at once, and how many rounds keep them busy."""

from collections.abc import Sequence

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import REMOTE, devices_wanted, engine_key
from winnow.tasks.spec.sections.execution import ExecutionSpec

VLLM_SEQUENCES = 256
"""Sequences that vLLM runs at once where `max_num_seqs` is not given."""
FULL = 6.0
"""Requests in flight over those that engines take at once. A round is in flight for as long as its longest
text is written, and a text of heavy-tailed length (log-normal with sigma 1.2, cut at 512 tokens) takes a
sixth of that on average: it takes so many to keep the engines full. `make bench-lookahead` measures it."""
SHARE_OF_GRID = 0.05
"""Of all pairs, at the most, that are in flight: what is in flight was planned on less than is known."""


def auto_lookahead(models: Sequence[ModelRef], execution: ExecutionSpec, batch_size: int, grid: int) -> int:
    """How many rounds to have in flight beside the first, so that engines are busy and little is wasted.

    Args:
        models: All that will be asked.
        execution: How they are run.
        batch_size: Pairs of a round.
        grid: Pairs in all.
    """
    return rounds_ahead(requests_at_once(models, execution), batch_size, grid)


def rounds_ahead(at_once: int, batch_size: int, grid: int) -> int:
    """The same of engines that take so many requests at once."""
    return max(0, int(min(FULL * at_once, SHARE_OF_GRID * grid) / batch_size) - 1)


def requests_at_once(models: Sequence[ModelRef], execution: ExecutionSpec) -> int:
    """How many requests all engines that can be at work together take at the same time."""
    by_engine = {engine_key(each): each for each in models}.values()
    sizes = [(_sequences(each, execution), devices_wanted(each)) for each in by_engine]
    left, total = max(1, len(execution.devices)), 0
    for size, width in sorted(sizes, reverse=True):
        if width <= left:
            left -= width
            total += size
    return total


def _sequences(model: ModelRef, execution: ExecutionSpec) -> int:
    """What one engine takes at once; one that answers batch by batch takes a group."""
    if model.provider in REMOTE:
        return execution.max_connections
    if model.provider == "vllm":
        given = model.model_args.get("max_num_seqs")
        return given if isinstance(given, int) and not isinstance(given, bool) else VLLM_SEQUENCES
    return execution.group_size
