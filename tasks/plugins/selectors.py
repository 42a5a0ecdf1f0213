"""Selectors for campaigns; an error of a third-party selector contains the selector's name."""

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.claims import ArmStatus, Assumption, Claim, ClaimKind, Reason
from winnow.algorithms.decision import Bets, Decision, Differences
from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.registry import create_selector, third_party
from winnow.tasks.plugins.entry_points import Plugin, calling


def campaign_selector(name: str, *, n_arms: int, n_examples: int, **params: object) -> Selector:
    """Create a selector without observations; see `algorithms.registry.create_selector`.

    Raises:
        AlgorithmError: Like `create_selector`.
        PluginFailed: If a plug-in raises any other exception.
    """
    if (entry := third_party(name)) is None:
        return create_selector(name, n_arms=n_arms, n_examples=n_examples, **params)
    plugin = Plugin(kind="selector", name=name, location=entry.value)
    with calling(plugin, AlgorithmError):
        inner = create_selector(name, n_arms=n_arms, n_examples=n_examples, **params)
    return PluginSelector(plugin, inner, n_arms=n_arms, n_examples=n_examples)


class PluginSelector:
    """Call a third-party selector or router, and check its results.

    Args:
        plugin: The selector's plug-in.
        inner: The selector.
        n_arms: Number K of arms at the beginning; a router can get more.
        n_examples: Number n of examples.
    """

    def __init__(self, plugin: Plugin, inner: Any, *, n_arms: int, n_examples: int) -> None:  # noqa: ANN401
        self._plugin, self._inner = plugin, inner
        self._n_arms, self._n_examples = n_arms, n_examples

    def ask(self, *given: object) -> Batch:
        """Propose the next pairs; see `Selector`.

        Raises:
            PluginFailed: If the selector raises an exception, or proposes a pair that does not exist.
        """
        with calling(self._plugin):
            batch = self._inner.ask(*given)
            if not isinstance(batch, Batch):
                raise TypeError(f"ask must return a Batch, got {type(batch).__name__}")
            for what, values, count in (
                ("arm", batch.arms, self._n_arms),
                ("example", batch.examples, self._n_examples),
            ):
                if (outside := values[(values < 0) | (values >= count)]).size:
                    raise ValueError(
                        f"ask returned {what} {outside[0]}, but there are {count}, counted from 0"
                    )
            return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes; see `Selector`. Raises `PluginFailed` if the selector raises."""
        with calling(self._plugin):
            self._inner.tell(batch, outcomes)

    def decision(self) -> Decision:
        """See `Selector`.

        Raises:
            PluginFailed: If the selector raises an exception, or its result is not a decision about all arms.
        """
        with calling(self._plugin):
            decision = self._inner.decision()
            if not isinstance(decision, Decision):
                raise TypeError(f"decision must return a Decision, got {type(decision).__name__}")
            _require_parts(decision)
            _require_arms(decision, self._n_arms)
            return decision

    def add_arm(self) -> int:
        """Add an arm; see `Router`. Raises `PluginFailed` if the router raises."""
        with calling(self._plugin):
            added = int(self._inner.add_arm())
        self._n_arms = max(self._n_arms, added + 1)
        return added

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- what else it has, such as a router's policy
        with calling(self._plugin, AttributeError):
            value = getattr(self._inner, name)
        if not callable(value):
            return value

        def call(*args: object, **named: object) -> object:
            with calling(self._plugin):
                return value(*args, **named)

        return call


def _require_parts(decision: Decision) -> None:
    """Refuse a decision whose fields have unknown types or values."""
    for name, kinds in PARTS.items():
        if not isinstance(found := getattr(decision, name), kinds):
            raise TypeError(f"the decision's {name} is {found!r:.80}, of type {type(found).__name__}")
    for name, found, known in (
        ("status", decision.status, get_args(ArmStatus)),
        ("reason", (decision.reason,), get_args(Reason)),
        ("claim.kind", (decision.claim.kind,), get_args(ClaimKind)),
        ("claim.assumptions", decision.claim.assumptions, get_args(Assumption)),
    ):
        for word in found:
            if word not in known:
                raise ValueError(
                    f"the decision's {name} has {word!r}, which is not one of {', '.join(known)}"
                )


PARTS: Mapping[str, tuple[type, ...]] = {
    "best": (int, np.integer, NoneType),
    "stop": (bool, np.bool_),
    "status": (tuple,),
    "claim": (Claim,),
    "differences": (Differences, NoneType),
    "bets": (Bets, NoneType),
}
"""Allowed types of a decision's fields, besides its arrays."""


def _require_arms(decision: Decision, n_arms: int) -> None:
    """Refuse a decision that does not cover exactly `n_arms` arms."""
    numbers = [decision.estimates, decision.lower, decision.upper, decision.ranked_by]
    named = [decision.best]
    if (compared := decision.differences) is not None:
        numbers += [compared.estimates, compared.lower, compared.upper]
        named.append(compared.against)
    if decision.bets is not None:
        numbers += [getattr(decision.bets, each.name) for each in fields(Bets)]
    shapes = {each.shape if isinstance(each, np.ndarray) else None for each in numbers}
    if shapes != {(n_arms,)} or len(decision.status) != n_arms:
        raise ValueError(f"the decision's arrays and status must have {n_arms} arms each")
    for arm in named:
        if arm is not None and not 0 <= arm < n_arms:
            raise ValueError(f"the decision names arm {arm}, but there are {n_arms}, counted from 0")
    if (crossed := np.flatnonzero(decision.lower > decision.upper)).size:
        raise ValueError(f"the decision's interval of arm {crossed[0]} ends before it begins")
