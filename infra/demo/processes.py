"""Train several checkpoints in parallel, each in a process with one thread, or one by one in this process.

Such small models cannot use two cores, so parallel processes need only two thirds of the time.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from winnow.infra.demo.artefacts import replacing
from winnow.infra.demo.errors import TrainingFailed
from winnow.infra.demo.recipes import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A checkpoint to train, with its folder and fingerprint."""

    recipe: Recipe
    folder: Path
    fingerprint: str


def train_in_processes(jobs: Sequence[Job], finished: Callable[[Job], None]) -> None:
    """Train all checkpoints in parallel, one per core, those with the longest training first.

    `finished` is called after a checkpoint is in its folder. Finished checkpoints stay if a later one fails.

    Raises:
        TrainingFailed: If a process ended without a checkpoint; all other processes are stopped.
    """
    waiting = sorted(jobs, key=lambda job: job.recipe.cost)
    running: dict[int, tuple[SpawnProcess, Job]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < _cores():
                job = waiting.pop()
                process = multiprocessing.get_context("spawn").Process(
                    target=_train, args=(job,), daemon=True
                )
                process.start()
                running[process.sentinel] = (process, job)
            for sentinel in wait(list(running)):
                assert isinstance(sentinel, int), "a key of `running`"
                process, job = running.pop(sentinel)
                process.join()
                if process.exitcode:
                    raise TrainingFailed(job.recipe.name, process.exitcode)
                finished(job)
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def train_here(jobs: Sequence[Job], finished: Callable[[Job], None]) -> None:
    """Train checkpoints one by one in this process; the campaign then needs no further imports."""
    import torch
    from transformers.utils import logging

    from winnow.infra.demo.training import train_checkpoint

    logging.disable_progress_bar()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more threads would mostly wait for each other
    try:
        for job in jobs:
            with replacing(job.folder, job.fingerprint) as partial:
                train_checkpoint(job.recipe, partial)
            finished(job)
    finally:
        torch.set_num_threads(threads)


def _train(job: Job) -> None:
    # On Ctrl-C, the parent kills its children; if the parent is killed, the thread ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch
    from transformers.utils import logging

    from winnow.infra.demo.training import train_checkpoint

    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with replacing(job.folder, job.fingerprint) as partial:
        train_checkpoint(job.recipe, partial)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
