"""Replaying selectors on a table whose scores are all known, many times over, on several processes."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.errors import AlgorithmError
from algorithms.metrics import NOBODY
from algorithms.protocols import (
    Batch,
    BoolArray,
    Decision,
    FloatArray,
    IntArray,
    Selector,
    round_rng,
)
from algorithms.registry import create_selector, describe
from tasks.errors import SpecError, WinnowError

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""How many threads a process's matrix products take; read once, when numpy is imported."""

SET_BY_SIMULATION = {"budget": "--budgets", "history": "--history or --history-share"}
"""Parameters a contestant may not set itself, and what sets them."""


class SelectorFailed(WinnowError):
    """A selector broke off a run, or broke the promises of `algorithms.protocols.Selector`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A selector with its parameters."""

    label: str
    """How it is called in results; unique in a simulation."""
    selector: str
    params: Mapping[str, Any]
    uses_history: bool
    """Whether it learns from the history, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """What one contestant with one seed believed at each of T budgets."""

    label: str
    seed: int
    spent: IntArray
    """Shape (T,), pairs told by then: the most whole batches that the budget paid for."""
    best: IntArray
    """Shape (T,), the recommended arm; `NOBODY` where there is none."""
    estimates: FloatArray
    """Shape (T, K), NaN where unknown."""


def contestant(label: str, selector: str, params: Mapping[str, Any]) -> Contestant:
    """A contestant whose parameters were checked; `history: None` among them does without the history.

    Raises:
        SpecError: If there is no such selector for best-mean, or it does not take these parameters.
    """
    own = {name: value for name, value in params.items() if (name, value) != ("history", None)}
    for name in own.keys() & SET_BY_SIMULATION.keys():
        raise SpecError(f"--selector {label}: {name} is set by {SET_BY_SIMULATION[name]}; leave it out")
    try:
        description = describe(selector)
        create_selector(selector, n_arms=2, n_examples=2, **own)
    except AlgorithmError as error:
        raise SpecError(f"--selector {label}: {error}") from error
    if description.objective != "best-mean":
        problem = f"{selector} answers {description.objective}, a table of scores is for best-mean"
        raise SpecError(f"--selector {label}: {problem}; `winnow selectors` lists what fits")
    takes_history = any(parameter.name == "history" for parameter in description.parameters)
    if "history" in params and not takes_history:
        raise SpecError(f"--selector {label}: {selector} takes no history; leave history=none out")
    return Contestant(
        label=label,
        selector=selector,
        params=own,
        uses_history=takes_history and "history" not in params,
    )


def simulate(
    scores: FloatArray,
    contestants: Sequence[Contestant],
    *,
    budgets: Sequence[int],
    seeds: Sequence[int],
    history: FloatArray | None = None,
    workers: int | None = None,
) -> Iterator[Run]:
    """Let every contestant run with every seed; yield the runs by seed, then in the contestants' order.

    A run depends on its contestant and seed only: not on the number of workers, nor on the other runs. Each
    worker is a process with one thread for matrix products, as the order of their sums may depend on it.

    Args:
        scores: Shape (K, n), in [0, 1]; a pair whose score is NaN comes back unscored.
        contestants: Whom to run.
        budgets: Pairs after which a run is looked at, increasing; the last one ends it.
        seeds: Non-negative; one run of each contestant per seed.
        history: Shape (M, n), scores of other arms on the same examples, for those who use it.
        workers: Processes; one per core if None.

    Raises:
        SelectorFailed: If a selector raises, asks for what it may not, or its process dies.
    """
    jobs = [(each, seed) for seed in seeds for each in contestants]
    pool = ProcessPoolExecutor(
        min(workers or os.cpu_count() or 1, len(jobs)),
        multiprocessing.get_context("spawn"),
        initializer=_begin_worker,
        initargs=(scores, history, tuple(budgets)),
    )
    try:
        with _one_thread_each():
            runs = pool.map(_run_job, jobs)
        yield from runs
    except BrokenProcessPool as error:
        cause = "a simulating process died, most likely for want of memory; use fewer --workers"
        raise SelectorFailed(cause) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def replay(
    contestant: Contestant,
    scores: FloatArray,
    *,
    budgets: Sequence[int],
    seed: int,
    history: FloatArray | None = None,
) -> Run:
    """One run, in this process; see `simulate`.

    Raises:
        SelectorFailed: If the selector raises or asks for what it may not.
    """
    where = f"selector {contestant.label!r} with seed {seed}"
    given = {"history": history} if contestant.uses_history and history is not None else {}
    # Nobody looks at the intervals of a run that does not stop by them.
    without_intervals = {} if contestant.params.keys() & {"delta", "intervals"} else {"intervals": False}
    spent, best, estimates = [], [], []
    taken = np.zeros(scores.shape, dtype=np.bool_)  # (K, n)
    told = round_ = 0
    with _failures_named(where, "at the start"):
        n_arms, n_examples = scores.shape
        selector = create_selector(
            contestant.selector,
            n_arms=n_arms,
            n_examples=n_examples,
            budget=budgets[-1],
            **given,
            **without_intervals,
            **contestant.params,
        )
    batch = _ask(selector, seed, round_, taken, where)
    for budget in budgets:
        while len(batch) and told + len(batch) <= budget:
            with _failures_named(where, f"in round {round_}"):
                selector.tell(batch, scores[batch.arms, batch.examples])
            told += len(batch)
            round_ += 1
            batch = _ask(selector, seed, round_, taken, where)
        with _failures_named(where, f"after round {round_}"):
            decision = _checked(selector.decision(), len(scores))
        spent.append(told)
        best.append(NOBODY if decision.best is None else decision.best)
        estimates.append(decision.estimates)
    return Run(
        label=contestant.label,
        seed=seed,
        spent=np.array(spent),
        best=np.array(best),
        estimates=np.array(estimates),
    )


def _ask(selector: Selector, seed: int, round_: int, taken: BoolArray, where: str) -> Batch:
    """The batch of a round; its pairs are marked in the flags, shape (K, n)."""
    with _failures_named(where, f"in round {round_}"):
        batch = selector.ask(round_rng(seed, round_))
        pairs = np.ravel_multi_index((batch.arms, batch.examples), taken.shape)  # raises where outside
        if taken.flat[pairs].any() or np.unique(pairs).size < len(batch):
            raise ValueError("it asked for a pair that it had asked for before")
        taken.flat[pairs] = True
    return batch


def _checked(decision: Decision, n_arms: int) -> Decision:
    if decision.best is not None and not 0 <= decision.best < n_arms:
        raise ValueError(f"it recommends arm {decision.best} of {n_arms}")
    if decision.estimates.shape != (n_arms,):
        raise ValueError(f"its estimates have shape {decision.estimates.shape} for {n_arms} arms")
    return decision


@contextmanager
def _failures_named(where: str, when: str) -> Iterator[None]:
    """A selector may be anybody's, so that anything may go wrong in it: who and when, in one sentence."""
    try:
        yield
    except Exception as error:
        what = f"{type(error).__name__}: {error}".replace("\n", " ")
        raise SelectorFailed(f"{where} failed {when}: {what}; mend it or leave it out") from error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started in this block use one thread for matrix products."""
    before = {name: os.environ.get(name) for name in THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_given: tuple[FloatArray, FloatArray | None, tuple[int, ...]]
"""In a worker: what all its runs share, sent once."""


def _begin_worker(scores: FloatArray, history: FloatArray | None, budgets: tuple[int, ...]) -> None:
    global _given
    _given = (scores, history, budgets)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once and without a traceback


def _run_job(job: tuple[Contestant, int]) -> Run:
    scores, history, budgets = _given
    each, seed = job
    return replay(each, scores, budgets=budgets, seed=seed, history=history)
