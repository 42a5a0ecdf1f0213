"""Clocks that are wrong, and that are set while a campaign runs."""

import signal
from collections.abc import Generator
from functools import partial

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import (
    At,
    boot_time_off_by,
    clock_off_by,
    clock_that_jumps,
    die,
    hold,
)

Meeting = Generator[Run, None, None]
DAY = 86_400.0
SETTLED = ("decided", "undecided")
KILLED = (-signal.SIGKILL,)


@fault("the clock jumps a day ahead, then kill -9", *OBJECTIVES, codes=KILLED)
def ahead(scene: Scene) -> Meeting:
    yield _set_then_killed(scene, DAY)


@fault("the clock jumps a day back, then kill -9", *OBJECTIVES, codes=KILLED)
def back(scene: Scene) -> Meeting:
    yield _set_then_killed(scene, -DAY)


@fault("the clock jumps an hour to and fro", "best-mean", "route", codes=DONE, states=SETTLED)
def to_and_fro(scene: Scene) -> Meeting:
    yield scene.run(partial(clock_that_jumps, 3600.0)).ended()


@fault("the holder's clock is a day behind: another takes over", "best-mean", codes=(1,), states=SETTLED)
def holder_behind(scene: Scene) -> Meeting:
    yield _overtaken(scene, (partial(clock_off_by, -DAY),), ())


@fault("the clock is stepped: the holder looks like a later process", "best-mean", codes=(1,), states=SETTLED)
def stepped(scene: Scene) -> Meeting:
    yield _overtaken(scene, (), (partial(boot_time_off_by, 3600.0),))


def _set_then_killed(scene: Scene, seconds: float) -> Run:
    jump = At("before a batch", 2, partial(clock_off_by, seconds))
    return scene.run(jump, At("before a batch", 4, die)).ended()


def _overtaken(scene: Scene, first: tuple, second: tuple) -> Run:
    """The first is held within a batch until the second has taken over and ended the campaign."""
    run = scene.run(*first, At("before a batch", 3, hold)).held()
    other = scene.resume(*second).ended()
    assert other.code in DONE, other.said
    before = scene.history()
    run.go().ended()
    assert scene.history() == before, "it wrote after it had lost its lease"
    return run
