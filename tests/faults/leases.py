"""Holders of a lease that are frozen, cut off, doubled, or on a machine that is gone."""

import signal
from collections.abc import Generator
from functools import partial

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die, hold, impatient, short_lease, within

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")
SHORT = partial(short_lease, 3.0, 60.0)
"""No beat of the heart: frozen within one, a process would hold the database's lock as well."""


@fault("frozen by SIGSTOP, thawed after a takeover", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def frozen(scene: Scene) -> Meeting:
    run = scene.run(SHORT, At("before a batch", 3, hold)).held().send(signal.SIGSTOP)
    token = _token(scene)
    other = _takes_over(scene)
    assert other.code in DONE, other.said
    assert _token(scene) > token
    before = scene.history()
    run.send(signal.SIGCONT).go().ended()
    assert scene.history() == before, "it wrote after it had lost its lease"
    yield run


@fault("frozen by SIGSTOP, thawed while another runs", "best-mean", codes=(1,), states=("running",))
def thawed_beside_another(scene: Scene) -> Meeting:
    run = scene.run(SHORT, At("before a batch", 3, hold)).held().send(signal.SIGSTOP)
    other = _takes_over(scene, At("before a batch", 2, hold)).held()
    before = scene.history()
    run.send(signal.SIGCONT).go().ended()
    assert scene.history() == before, "it wrote after it had lost its lease"
    yield run
    assert other.go().code in DONE, other.said


@fault("two processes at the same moment", *OBJECTIVES, codes=(1,), states=("running",), databases=BOTH)
def two_at_once(scene: Scene) -> Meeting:
    scene.cut_short()
    both = [scene.resume(At("before a batch", 1, hold)) for _ in range(2)]
    refused, holder = _sorted_out(both)
    yield refused
    assert holder.go().code in DONE, holder.said


@fault("the holder's machine is gone", "best-mean", codes=(1,), states=("running", *STOPPED), databases=BOTH)
def machine_gone(scene: Scene) -> Meeting:
    """Its lease is found to be running, and by the time that its status is asked for, may have run out."""
    away = (partial(within, "one that is gone"), partial(short_lease, 30.0, 1.0))
    scene.run(*away, At("before a batch", 3, die)).ended()
    yield scene.resume().ended()
    _wait_for_expiry(scene)


@fault("the heart cannot beat: another takes over", "best-mean", codes=DONE, states=SETTLED)
def no_heartbeat(scene: Scene) -> Meeting:
    run = scene.run(partial(short_lease, 0.3, 60.0), At("before a batch", 3, hold)).held()
    other = _takes_over(scene)
    assert other.code in DONE, other.said
    yield run.go().ended()


@fault("the holder is in another container of this host", *OBJECTIVES, codes=(1,), states=("running",),
       databases=BOTH)  # fmt: skip
def in_another_container(scene: Scene) -> Meeting:
    run = scene.run(partial(within, "one"), At("before a batch", 3, hold)).held()
    yield scene.resume(partial(within, "another")).ended()
    assert run.go().code in DONE, run.said


@fault("frozen by SIGSTOP within a write", "best-mean", codes=(1,), states=("running",))
def frozen_within_a_write(scene: Scene) -> Meeting:
    run = scene.run(At("before a commit", 6, hold)).held().send(signal.SIGSTOP)
    other = scene.command("run", "campaign.yaml", "--set", "name=other", tamperings=[partial(impatient, 800)])
    yield other.ended()
    assert f"kill -CONT {run.pid}" in other.sentence, other.said
    run.send(signal.SIGCONT)
    assert run.go().code in DONE, run.said


def _takes_over(scene: Scene, *tamperings: At) -> Run:
    _wait_for_expiry(scene)
    return scene.resume(*tamperings)


def _wait_for_expiry(scene: Scene) -> None:
    import time

    deadline = time.monotonic() + 90
    while scene.status()["state"] == "running":
        assert time.monotonic() < deadline, "the lease does not run out"
        time.sleep(0.2)


def _sorted_out(both: list[Run]) -> tuple[Run, Run]:
    """Of two that began together, the one that was refused and the one that goes on."""
    import time

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for refused, holder in (both, reversed(both)):
            if refused.process.exitcode is not None:
                return refused, holder.held()
        time.sleep(0.01)
    raise AssertionError("neither was refused")


def _token(scene: Scene) -> int:
    return scene.stored("SELECT token FROM leases")[0][0]
