"""OpenAI-compatible servers that fail, refuse, garble, hang, are away or are killed; see `model_servers`."""

import gzip
import math
import signal
from collections.abc import Generator
from functools import partial

from faulty_server import (
    DROPPED,
    GARBAGE,
    HANGING,
    NO_CHOICES,
    NO_TEXT,
    OVERLOADED,
    SERVER_ERROR,
    TORN,
    TRUNCATED,
    WRONG_KEY,
    WRONG_SHAPE,
    Fault,
    rate_limited,
)

from tests.faults.model_servers import SERVER, Dies, Spoils
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold, soon_again

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
TERMINATED = 143
SPENT = 5
"""Attempts that one engine, which makes four, does not live to see."""
BEFORE_A_RETRY = At("a server is to be asked again", 1, hold)
AT_ONCE = partial(soon_again, 0.01)


@fault("a server answers 500 for a while", "served", codes=DONE, states=SETTLED,
       databases=("sqlite", "postgresql"))  # fmt: skip
def server_error(scene: Scene) -> Meeting:
    yield _met(scene, SERVER_ERROR)


@fault("a server answers 503 until all retries are spent", "served", codes=DONE, states=SETTLED)
def retries_spent(scene: Scene) -> Meeting:
    run = _met(scene, OVERLOADED, times=SPENT, texts=1)
    assert "after 4 attempts" in run.said, "no retries were spent"
    yield run


@fault("a server answers 503: overloaded", "served", codes=DONE, states=SETTLED)
def overloaded(scene: Scene) -> Meeting:
    yield _met(scene, OVERLOADED)


@fault("a server answers 429 with Retry-After", "served", codes=DONE, states=SETTLED)
def limited_for_a_time(scene: Scene) -> Meeting:
    yield _met(scene, rate_limited(0.2))


@fault("a server answers 429 without Retry-After", "served", codes=DONE, states=SETTLED)
def limited(scene: Scene) -> Meeting:
    yield _met(scene, rate_limited())


@fault("a server answers with bytes that are no JSON", "served", codes=DONE, states=SETTLED)
def garbage(scene: Scene) -> Meeting:
    yield _met(scene, GARBAGE)


@fault("a server answers with half of the JSON", "served", codes=DONE, states=SETTLED)
def truncated(scene: Scene) -> Meeting:
    yield _met(scene, TRUNCATED)


@fault("a server drops the connection before its answer", "served", codes=DONE, states=SETTLED)
def dropped(scene: Scene) -> Meeting:
    yield _met(scene, DROPPED)


@fault("a server drops the connection within its answer", "served", codes=DONE, states=SETTLED)
def torn(scene: Scene) -> Meeting:
    yield _met(scene, TORN)


@fault("a server's answer is of the wrong shape", "served", codes=DONE, states=SETTLED)
def wrong_shape(scene: Scene) -> Meeting:
    yield _met(scene, WRONG_SHAPE)


@fault("a server's answer holds no text", "served", codes=DONE, states=SETTLED)
def no_choices(scene: Scene) -> Meeting:
    yield _met(scene, NO_CHOICES)


@fault("a server's answer has no end", "served", codes=DONE, states=SETTLED)
def endless(scene: Scene) -> Meeting:
    yield _met(scene, Fault(body=b" " * 65_536, endless=True))


@fault("a server's answer is compressed a thousandfold", "served", codes=DONE, states=SETTLED)
def compressed(scene: Scene) -> Meeting:
    yield _met(scene, Fault(body=gzip.compress(b" " * (1 << 26)), headers={"Content-Encoding": "gzip"}))


@fault("a server's answer holds a number of 5 000 digits", "served", codes=DONE, states=SETTLED)
def long_number(scene: Scene) -> Meeting:
    yield _met(scene, Fault(body=b'{"usage": %s}' % (b"9" * 5_000)))


@fault("a server's answer comes with a flood of headers", "served", codes=DONE, states=SETTLED)
def flooded(scene: Scene) -> Meeting:
    yield _met(scene, Fault(headers={"x-flood": "x" * 300_000}))


@fault("a server answers with nothing", "served", codes=DONE, states=SETTLED)
def nothing(scene: Scene) -> Meeting:
    yield _met(scene, Fault(body=b""))


@fault("a server answers 408: too slow for it", "served", codes=DONE, states=SETTLED)
def timed_out(scene: Scene) -> Meeting:
    yield _met(scene, Fault(status=408, body=b""))


@fault("a server's proxy answers 502 with a page", "served", codes=DONE, states=SETTLED)
def bad_gateway(scene: Scene) -> Meeting:
    yield _met(scene, Fault(status=502, body=b"<html><h1>502 Bad Gateway</h1></html>"))


@fault("a server's text is a number", "served", codes=DONE, states=SETTLED)
def no_text(scene: Scene) -> Meeting:
    yield _met(scene, NO_TEXT)


@fault("a server's answer comes a byte at a time", "served", codes=DONE, states=SETTLED)
def dripping(scene: Scene) -> Meeting:
    yield _met(scene, Fault(drip=0.2), times=1)


@fault("a server hangs", "served", codes=DONE, states=SETTLED)
def hangs(scene: Scene) -> Meeting:
    yield _met(scene, HANGING, times=1)


@fault("a server hangs until all retries are spent", "served", codes=DONE, states=SETTLED)
def hangs_for_long(scene: Scene) -> Meeting:
    run = _met(scene, HANGING, times=SPENT, texts=1)
    assert "after 4 attempts" in run.said, "no retries were spent"
    yield run


@fault("no server is there at the start, and then one is", "served", codes=DONE, states=SETTLED)
def away_at_first(scene: Scene) -> Meeting:
    SERVER.kill()
    run = scene.run(BEFORE_A_RETRY).held()
    SERVER.start()
    yield run.go().ended()


@fault("a server is killed within a batch, and another one is there", "served", codes=DONE, states=SETTLED,
       databases=("sqlite", "postgresql"))  # fmt: skip
def killed(scene: Scene) -> Meeting:
    SERVER.start(Dies())
    run = scene.run(BEFORE_A_RETRY).held()
    SERVER.start()
    yield run.go().ended()


@fault("a server stays away until the campaign is stopped", "served", codes=(TERMINATED,))
def stays_away(scene: Scene) -> Meeting:
    SERVER.start(Dies())
    run = scene.run(BEFORE_A_RETRY).held().send(signal.SIGTERM)
    yield run.go().ended()  # engines are closed by the thread that is held
    SERVER.start()


@fault("a server refuses the key, and the campaign is stopped", "served", codes=(TERMINATED,))
def wrong_key(scene: Scene) -> Meeting:
    # Stopped before the round is recorded: its comparisons would have been without a score.
    SERVER.start(Spoils(fault=WRONG_KEY, met=scene.folder / "met", times=math.inf, texts=math.inf))
    yield scene.run(At("an engine has failed", 1, hold)).held().send(signal.SIGTERM).ended()
    SERVER.start()


def _met(scene: Scene, fault: Fault, times: int = 2, texts: int = 4) -> Run:
    SERVER.start(Spoils(fault=fault, met=scene.folder / "met", times=times, texts=texts))
    run = scene.run(AT_ONCE).ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run
