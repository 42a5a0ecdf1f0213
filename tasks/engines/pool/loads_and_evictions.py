"""Order in which models are used, and which are evicted, so that loads are few and cheap.

A pass uses each model of a set once, one after another. A pass over the models W while L are loaded costs at
least one load for each model of W that is not in L, and using those of L first costs no more than that. It
remains to choose which models stay in memory for the next pass:

* Models that will soon be used are kept first: Belady's rule, as far as the future is known.
* Of the others, the one with the lowest priority is evicted. A model's priority is its load time plus, at its
  last use, the priority of the model evicted last: the GreedyDual rule of Young (1994). With k places it
  costs at most k times as much as with knowledge of the future; with equal costs it is "least recently used".
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

SHORTEST = 1.0
"""Minimum seconds that count for a load."""


def weight(seconds: float) -> float:
    """Weight of a load: seconds rounded to a power of 2, so that noise does not separate equal loads."""
    return float(2 ** round(math.log2(max(SHORTEST, seconds))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidentModel:
    """A loaded model, with what its eviction depends on."""

    key: str
    devices: tuple[int, ...]
    """Devices on which the model occupies a place."""
    busy: bool = False
    """Whether the model is answering requests; it then cannot be evicted, and its devices run no other model.
    """
    priority: float = 0.0
    """Priority of keeping the model in memory, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Devices for a model, and the models evicted for it."""

    devices: tuple[int, ...]
    leaving: tuple[str, ...] = ()


def asking_order(
    wanted: Sequence[str],
    *,
    loaded: Collection[str],
    asleep: Collection[str] = (),
    later: Collection[str] = (),
    seconds: Mapping[str, float],
) -> list[str]:
    """Models of a pass in the order in which they should be used.

    Models in memory come first, then sleeping ones, then those to load. Among the models to load, those with
    the longest load times come last, because the last models are still in memory when the next pass begins.
    Models that the next pass will use come after them.

    Args:
        wanted: Models of the pass, each once.
        loaded: Models in memory.
        asleep: Models whose weights are in main memory.
        later: Models that the next pass will use.
        seconds: Load times as returned by `weight`; a model without a load time counts as the shortest.
    """

    def rank(key: str) -> tuple[int, bool, float]:
        if key in loaded:
            return (0, False, 0.0)
        return (1 if key in asleep else 2, key in later, seconds.get(key, SHORTEST))

    return sorted(wanted, key=rank)


def allocation_for(
    width: int,
    *,
    devices: Sequence[int],
    places: int,
    resident: Sequence[ResidentModel],
    waiting: Collection[str] = (),
    later: Collection[str] = (),
) -> Allocation | None:
    """Choose devices and evictions so that a model can be loaded now; None if it must wait.

    Args:
        width: Number of devices of the model, at most the number of `devices`; 0 for a model that runs
            elsewhere.
        devices: All devices, or those that the model must use.
        places: Maximum number of models in memory on each device.
        resident: Models in memory, the least recently used first.
        waiting: Models that this pass still has to use; they are not evicted.
        later: Models that the next pass will use; they are evicted last.
    """
    at_work = {device for each in resident if each.busy for device in each.devices}
    staying = [each for each in resident if each.key not in waiting and not each.busy]
    spare = sorted(staying, key=lambda each: (each.key in later, each.priority))
    found: list[tuple[_Price, Allocation]] = []
    for chosen in combinations([device for device in devices if device not in at_work], width):
        leaving = _leaving(chosen, places, resident, spare)
        if leaving is not None:
            price = _Price(
                needed=sum(each.key in later for each in leaving),
                leaving=len(leaving),
                priority=sum(each.priority for each in leaving),
                recency=sum(resident.index(each) for each in leaving),
                company=sum(device in each.devices for each in resident for device in chosen),
            )
            found.append((price, Allocation(devices=chosen, leaving=tuple(each.key for each in leaving))))
    return min(found, key=lambda each: each[0])[1] if found else None


class _Price(NamedTuple):
    """Cost of an allocation; the lowest is chosen, and in a tie the first."""

    needed: int
    """Number of evicted models that the next pass uses."""
    leaving: int
    priority: float
    recency: int
    """Sum of the evicted models' positions in order of last use, so that those used longest ago are evicted
    first."""
    company: int
    """Number of occupied places on the allocation's devices, so that models are distributed over devices."""


def _leaving(
    chosen: Sequence[int], places: int, resident: Sequence[ResidentModel], spare: Sequence[ResidentModel]
) -> list[ResidentModel] | None:
    """Models to evict so that each device has a free place; None if too few can be evicted."""
    leaving: list[ResidentModel] = []
    for device in chosen:
        there = [each for each in resident if device in each.devices and each not in leaving]
        if len(there) < places:
            continue
        going = next((each for each in spare if each in there), None)
        if going is None:
            return None
        leaving.append(going)
    return leaving


KEPT_ASLEEP = 0.04
"""Share of a device's memory for each model that may sleep, whose process and CUDA graphs stay there."""
LEAST_AWAKE = 0.5
"""Minimum share of a device's memory for all awake engines, with any number of sleeping ones."""


def memory_share(max_loaded: int, most_asleep: int) -> float:
    """Share of a device's memory for each engine, so that all engines allowed on it have room."""
    return max(LEAST_AWAKE, 1.0 - KEPT_ASLEEP * most_asleep) / max_loaded
