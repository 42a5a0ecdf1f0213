"""Clocks that are wrong, and that are set while a campaign runs."""

import signal
from collections.abc import Generator
from functools import partial

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import (
    At,
    boot_time_off_by,
    clock_off_by,
    clock_that_jumps,
    die,
    hold,
    short_lease,
    within,
)

Meeting = Generator[Run, None, None]
DAY = 86_400.0
SETTLED = ("ended",)
KILLED = (-signal.SIGKILL,)
RUNNING = ("running",)
POSTGRESQL = ("postgresql",)
BOTH = ("sqlite", "postgresql")
BEATING = partial(short_lease, 60.0, 0.3)


@fault("the clock jumps a day ahead, then kill -9", *OBJECTIVES, codes=KILLED)
def ahead(scene: Scene) -> Meeting:
    yield _set_then_killed(scene, DAY)


@fault("the clock jumps a day back, then kill -9", *OBJECTIVES, codes=KILLED)
def back(scene: Scene) -> Meeting:
    yield _set_then_killed(scene, -DAY)


@fault("the clock jumps an hour to and fro", "best-mean", "route", codes=DONE, states=SETTLED)
def to_and_fro(scene: Scene) -> Meeting:
    yield scene.run(partial(clock_that_jumps, 3600.0)).ended()


@fault("the holder's clock is a day behind", "best-mean", codes=(1,), states=STOPPED)
def holder_behind(scene: Scene) -> Meeting:
    """Its heartbeats seem old: who reads them once cannot know better; who would take over watches them."""
    yield from _refused(scene, (partial(clock_off_by, -DAY),), ())


@fault("the holder's clock is a day behind", "best-mean", codes=(1,), states=RUNNING, databases=POSTGRESQL)
def holder_behind_on_a_server(scene: Scene) -> Meeting:
    yield from _refused(scene, (partial(clock_off_by, -DAY),), ())


@fault("another machine's clock is 65 s ahead", *OBJECTIVES, codes=(1,), states=RUNNING, databases=BOTH)
def ahead_elsewhere(scene: Scene) -> Meeting:
    yield from _refused(scene, (), (partial(clock_off_by, 65.0), partial(within, "another")))


@fault("the clock is an hour behind at resume", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def behind_at_resume(scene: Scene) -> Meeting:
    """Its later rounds look older than its first ones."""
    scene.cut_short()
    yield scene.resume(partial(clock_off_by, -3600.0)).ended()


@fault("the clock is stepped by 5 s", *OBJECTIVES, codes=(1,), states=RUNNING, databases=BOTH)
def stepped(scene: Scene) -> Meeting:
    yield from _refused(scene, (), (partial(boot_time_off_by, 5.0), partial(clock_off_by, 5.0)))


def _set_then_killed(scene: Scene, seconds: float) -> Run:
    jump = At("before a batch", 2, partial(clock_off_by, seconds))
    return scene.run(jump, At("before a batch", 4, die)).ended()


def _refused(scene: Scene, first: tuple, second: tuple) -> Meeting:
    """The first is held within a batch, while its heart beats; the second must not take its place."""
    run = scene.run(*first, BEATING, At("before a batch", 3, hold)).held()
    yield scene.resume(*second).ended()
    assert run.go().code in DONE, run.said
