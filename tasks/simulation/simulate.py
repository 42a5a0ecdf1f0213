"""Simulate selectors on a table of known scores, many times, in processes."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from winnow.algorithms.best_mean.metrics import NOBODY
from winnow.algorithms.claims import ArmStatus, Claim, Reason
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import EMPTY_BATCH, Batch, Selector, round_rng
from winnow.algorithms.registry import ENTRY_POINT_GROUP, create_selector, describe
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.algorithms.state.plugin_registry import Registered, in_words, plugins
from winnow.storage.json_types import JsonView
from winnow.tasks.campaign.blas_threads import on_one_thread
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.plugins.entry_points import PluginFailed
from winnow.tasks.plugins.selectors import campaign_selector
from winnow.tasks.simulation.environments import Environment
from winnow.tasks.spec.selector_traits import ENDS_WITH_TIES

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables for the number of threads of matrix products; they are read once, when numpy is
imported.
"""

SET_BY_SIMULATION = {
    "budget": "--budgets",
    "history": "--history or --history-share",
    "features": "the table",
    "dim": "--contexts or --embed",
}
"""Parameters that selectors must not set here, with their source."""

BY_NUMBER = ("baseline", "top_m")
"""Parameters that are a number of arms or an arm's index, so that more arms than that are needed."""

MOST_ARMS = 2_000
"""Maximum number of arms of a selector that is only checked."""

KNOWLEDGE = ("history", "features")
"""Parameters for which an environment can have data; None for a parameter declines the data."""


class SelectorFailed(WinnowError):
    """A selector raised an error in a run, or violated the `Selector` protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSelector:
    """A selector with its parameters, for a simulation."""

    label: str
    """Name in results; unique in a simulation."""
    selector: str
    objective: str
    params: JsonView
    uses: frozenset[str]
    """Those of `KNOWLEDGE` that it uses, if an environment has them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """The decisions of one selector with one seed, at each of T budgets."""

    label: str
    seed: int
    spent: IntArray
    """Number of pairs observed by each budget, shape (T,): as many whole batches as the budget allows."""
    told: Batch
    """The observed pairs, in order."""
    best: IntArray
    """The recommended arm at each budget, shape (T,); `NOBODY` without a recommendation."""
    ranking: FloatArray
    """Values by which arms are ranked at each budget, shape (T, K); NaN if unknown."""
    status: tuple[ArmStatus, ...]
    """Final status of each of the K arms."""
    reason: Reason
    """Reason why the run ended."""
    claim: Claim
    """Final claim about the recommended arm."""

    @property
    def is_decided(self) -> bool:
        """Whether the final answer is exact, or proven at the requested error probability."""
        return self.claim.kind in ("exact", "proven")


_Given = tuple[Environment, tuple[int, ...]]
"""Common input of all runs: the environment, and the budgets."""
_Job = tuple[ComparedSelector, int]
"""A run: its selector and its seed."""


def compared_selector(label: str, selector: str, params: JsonView) -> ComparedSelector:
    """Check a selector's parameters for a simulation.

    `history: None` disables the history.

    Raises:
        SpecError: The selector does not exist, or does not accept these parameters.
    """
    declined = {name for name in KNOWLEDGE if name in params and params[name] is None}
    own = {name: value for name, value in params.items() if name not in declined}
    if selector in ENDS_WITH_TIES:  # as in a campaign that begins now
        own.setdefault("ties", "open")
    for name in own.keys() & SET_BY_SIMULATION.keys():
        raise SpecError(f"--selector {label}: {name} is set by {SET_BY_SIMULATION[name]}; remove {name}")
    try:
        description = describe(selector)
        accepted = {parameter.name for parameter in description.parameters}
        # Some selectors need features or contexts; any of them are enough to check the other parameters.
        n_arms = min(max([2, *(number + 1 for number in _numbers(own).values())]), MOST_ARMS)
        stand_ins: dict[str, object] = {"features": np.eye(n_arms), "dim": 1}
        given = {name: value for name, value in stand_ins.items() if name in accepted - declined}
        campaign_selector(selector, n_arms=n_arms, n_examples=2, **own, **given)
    except (AlgorithmError, PluginFailed) as error:
        raise SpecError(f"--selector {label}: {error}") from error
    for name in sorted(declined - accepted):
        raise SpecError(f"--selector {label}: {selector} has no parameter {name}; remove {name}=none")
    return ComparedSelector(
        label=label,
        selector=selector,
        objective=description.objective,
        params=own,
        uses=frozenset(KNOWLEDGE) & accepted - declined,
    )


def require_arms(compared: Sequence[ComparedSelector], n_arms: int) -> None:
    """Refuse selectors that need more arms than a table has.

    Raises:
        SpecError: A selector needs more arms; names the first one.
    """
    for each in compared:
        for name, number in _numbers(each.params).items():
            if number >= n_arms:
                raise SpecError(
                    f"--selector {each.label}: {name}={number} needs more than {number} candidates, and the "
                    f"table has {n_arms}"
                )


def _numbers(params: JsonView) -> dict[str, int]:
    """Those of the given parameters that are in `BY_NUMBER` and are numbers."""
    return {name: params[name] for name in BY_NUMBER if isinstance(params.get(name), int)}


def simulate(
    environment: Environment,
    compared: Sequence[ComparedSelector],
    *,
    budgets: Sequence[int],
    seeds: Sequence[int],
    workers: int | None = None,
    pool: ProcessPoolExecutor | None = None,
) -> Iterator[Run]:
    """Run every selector with every seed; yield the runs by seed, then by selector.

    A run depends only on its selector and seed, not on the number of workers or on other runs. Each worker is
    a process with one thread for matrix products, because the order of sums can depend on the number of
    threads.

    Args:
        environment: The environment.
        compared: Selectors to run, all for the environment's objective.
        budgets: Numbers of comparisons at which a run is evaluated, increasing; the last one ends it.
        seeds: Non-negative seeds; each selector has one run per seed.
        workers: Number of processes; None for one per core.
        pool: Processes of `simulators` for the runs; None for new ones.

    Raises:
        SelectorFailed: A selector raises an error or proposes an invalid batch, or its process dies.
    """
    jobs = [(each, seed) for seed in seeds for each in compared]
    given = (environment, tuple(budgets))
    own = simulators(min(workers or os.cpu_count() or 1, len(jobs)), given)
    with own if pool is None else nullcontext(pool) as processes:
        run = _run_job if pool is None else partial(_run_given, given)
        try:
            with _one_thread_each():
                runs = processes.map(run, jobs)
            yield from runs
        except BrokenProcessPool as error:
            cause = "a simulating process died, probably out of memory; use fewer --workers"
            raise SelectorFailed(cause) from error


@contextmanager
def simulators(workers: int, given: _Given | None = None) -> Iterator[ProcessPoolExecutor]:
    """Start processes for runs, once, because this takes longer than a short run.

    At its end, the block waits for the processes: a program that exits before them can use a pipe that is
    being closed, and prints a traceback. After an exception, such as Ctrl-C, it does not wait.

    Args:
        workers: Maximum number of processes.
        given: Common input of all runs; None if it is not known yet.
    """
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_begin_worker, initargs=(given,)
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown(cancel_futures=True)


@on_one_thread
def replay(compared: ComparedSelector, environment: Environment, *, budgets: Sequence[int], seed: int) -> Run:
    """Run a selector once, in this process; see `simulate`.

    Raises:
        SelectorFailed: The selector raises an error or proposes an invalid batch.
    """
    where = f"selector {compared.label!r} with seed {seed}"
    given = {name: value for name, value in environment.knowledge.items() if name in compared.uses}
    spent, best, ranking = [], [], []
    batches: list[Batch] = []
    validate = environment.batch_validator()
    told = round_ = 0
    with _failures_named(where, "at the start"):
        n_arms, n_examples = environment.shape
        selector = create_selector(
            compared.selector,
            n_arms=n_arms,
            n_examples=n_examples,
            budget=budgets[-1],
            **given,
            **environment.settings(compared.params),
            **compared.params,
        )
        selector = environment.wrap(selector, seed)
    batch = _ask(selector, seed, round_, validate, where)
    for budget in budgets:
        while len(batch) and told + len(batch) <= budget:
            with _failures_named(where, f"in round {round_ + 1}"):
                selector.tell(batch, environment.outcomes(batch, seed, round_))
            told += len(batch)
            batches.append(batch)
            round_ += 1
            batch = _ask(selector, seed, round_, validate, where)
        with _failures_named(where, f"after round {round_}"):
            decision = _checked(selector.decision(), n_arms)
        spent.append(told)
        best.append(NOBODY if decision.best is None else decision.best)
        ranking.append(decision.ranked_by)
    return Run(
        label=compared.label,
        seed=seed,
        spent=np.array(spent),
        told=_joined(batches),
        best=np.array(best),
        ranking=np.array(ranking),
        status=decision.status,
        reason=decision.reason,
        claim=decision.claim,
    )


def _ask(selector: Selector, seed: int, round_: int, validate: Callable[[Batch], None], where: str) -> Batch:
    """Get the validated batch of a round from a selector."""
    with _failures_named(where, f"in round {round_ + 1}"):
        batch = selector.ask(round_rng(seed, round_))
        if len(batch):
            validate(batch)
    return batch


def _joined(batches: Sequence[Batch]) -> Batch:
    if not batches:
        return EMPTY_BATCH
    return Batch(
        np.concatenate([batch.arms for batch in batches]),
        np.concatenate([batch.examples for batch in batches]),
    )


def _checked(decision: Decision, n_arms: int) -> Decision:
    if decision.best is not None and not 0 <= decision.best < n_arms:
        raise ValueError(f"it recommends arm {decision.best} of {n_arms}")
    if decision.ranked_by.shape != (n_arms,):
        raise ValueError(f"its ranking has shape {decision.ranked_by.shape} for {n_arms} arms")
    return decision


@contextmanager
def _failures_named(where: str, when: str) -> Iterator[None]:
    """Convert any exception to one sentence with the selector that failed, and when."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SelectorFailed(f"{where} failed {when}: {in_words(error)}; fix it or remove it") from error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Set one thread for matrix products in processes that are started in this block."""
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


@contextmanager
def apart_from_the_program() -> Iterator[None]:
    """Keep processes started in this block from importing and running the program.

    If the program has registered selectors, they import it, because they could not find these otherwise. The
    program then needs the guard `if __name__ == "__main__"`.
    """
    main = vars(sys.modules["__main__"])
    if any(isinstance(entry, Registered) for entry in plugins(ENTRY_POINT_GROUP).values()):
        yield
        return
    hidden = {str(name): main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None  # as in an interactive session

    try:
        yield
    finally:
        main.update(hidden)


_given: _Given | None
"""In a worker process: the common input of all its runs, sent once."""


def _begin_worker(given: _Given | None) -> None:
    global _given
    _given = given
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it at once and without a traceback


def _run_job(job: _Job) -> Run:
    assert _given is not None
    return _run_given(_given, job)


def _run_given(given: _Given, job: _Job) -> Run:
    environment, budgets = given
    each, seed = job
    return replay(each, environment, budgets=budgets, seed=seed)
