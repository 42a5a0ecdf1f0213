"""A cell is a world, a selector and a promise; a run of it is one whole campaign."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Literal, NamedTuple

import numpy as np

from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch, Selector


class Run(NamedTuple):
    """How one campaign ended."""

    is_claimed: bool
    """Whether its answer was exact or proven."""
    is_wrong: bool
    """Whether that was false."""
    bound: float
    """The probability of an error that it stated; 0 where it claimed nothing or said exact."""
    trace: bytes
    """A digest of all that was asked and told and of what was decided, to the last bit."""


class Scene(NamedTuple):
    """One draw of a world: a selector to play with, what becomes of its batches, and what is true."""

    selector: Selector
    outcomes: Callable[[Batch, np.random.Generator], np.ndarray]
    """Of a batch, NaN where unscored; shapes as the objective has them."""
    is_wrong: Callable[[Decision], bool]
    """Whether what a decision claims is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is run, how often, and whether it is meant to fail."""

    name: str
    objective: str
    selector: str
    """A name of the registry."""
    build: "partial[Scene]"
    """Draws the world from a generator, on which alone it may depend; all other arguments are given."""
    runs: int
    delta: float
    """The probability that was asked for."""
    expected: Literal["kept", "broken", "reported"] = "kept"
    """"kept" where what the claim takes for granted holds; "broken" where it is false on purpose and the
    check has to see that; "reported" where it is false and the method has a chance to notice."""


def play(cell: Cell, seed: int) -> Run:
    """One campaign until its selector asks nothing more, and what it then decides.

    To look at the decisions before that would change nothing, and takes more time than all else; and all
    rounds draw from one generator, as making one for each takes as long as a round.
    """
    of_world, of_outcomes, of_batches = (np.random.default_rng([seed, part]) for part in (1, 2, 3))
    scene, trace = cell.build(of_world), sha256()
    while len(batch := scene.selector.ask(of_batches)) > 0:
        outcomes = scene.outcomes(batch, of_outcomes)
        scene.selector.tell(batch, outcomes)
        for told in (batch.arms, batch.examples, outcomes):
            trace.update(told.tobytes())
    decision = scene.selector.decision()
    for found in (decision.estimates, decision.lower, decision.upper):
        trace.update(found.tobytes())
    claim = decision.claim
    trace.update(repr((decision.best, decision.status, decision.reason, claim)).encode())
    is_claimed = claim.kind in ("exact", "proven")
    return Run(is_claimed, is_claimed and scene.is_wrong(decision), claim.delta or 0.0, trace.digest())
