"""Selectors as campaigns use them: one of another package is called so that what it raises names it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.registry import create_selector, third_party
from winnow.tasks.plugins.entry_points import Plugin, calling


def campaign_selector(name: str, *, n_arms: int, n_examples: int, **params: object) -> Selector:
    """A selector that was told nothing yet; see `algorithms.registry.create_selector`.

    Raises:
        AlgorithmError: Like `create_selector`.
        PluginFailed: If a plug-in raises anything else.
    """
    if (entry := third_party(name)) is None:
        return create_selector(name, n_arms=n_arms, n_examples=n_examples, **params)
    plugin = Plugin(kind="selector", name=name, location=entry.value)
    with calling(plugin, AlgorithmError):
        inner = create_selector(name, n_arms=n_arms, n_examples=n_examples, **params)
    return PluginSelector(plugin, inner, n_arms=n_arms, n_examples=n_examples)


class PluginSelector:
    """Calls a plug-in's selector, or router, and holds what it returns against what it was told.

    Args:
        plugin: Whose it is.
        inner: The selector.
        n_arms: K at the beginning; a router may be given more.
        n_examples: n.
    """

    def __init__(self, plugin: Plugin, inner: Any, *, n_arms: int, n_examples: int) -> None:  # noqa: ANN401
        self._plugin, self._inner = plugin, inner
        self._n_arms, self._n_examples = n_arms, n_examples

    def ask(self, *given: object) -> Batch:
        """See `Selector`.

        Raises:
            PluginFailed: If anything is raised, or what is asked for does not exist.
        """
        with calling(self._plugin):
            batch = self._inner.ask(*given)
            if not isinstance(batch, Batch):
                raise TypeError(f"ask returns a Batch, got {type(batch).__name__}")
            for what, values, count in (
                ("arm", batch.arms, self._n_arms),
                ("example", batch.examples, self._n_examples),
            ):
                if (outside := values[(values < 0) | (values >= count)]).size:
                    raise ValueError(f"ask returned {what} {outside[0]}; there are {count}, from 0")
            return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """See `Selector`; raises `PluginFailed` if anything is raised."""
        with calling(self._plugin):
            self._inner.tell(batch, outcomes)

    def decision(self) -> Decision:
        """See `Selector`.

        Raises:
            PluginFailed: If anything is raised, or what is returned is no decision about all arms.
        """
        with calling(self._plugin):
            decision = self._inner.decision()
            if not isinstance(decision, Decision):
                raise TypeError(f"decision returns a Decision, got {type(decision).__name__}")
            numbers = (decision.estimates, decision.lower, decision.upper, decision.ranked_by)
            shapes = {each.shape if isinstance(each, np.ndarray) else None for each in numbers}
            if shapes != {(self._n_arms,)} or len(decision.status) != self._n_arms:
                raise ValueError(f"the decision's arrays and status are not of {self._n_arms} arms each")
            if decision.best is not None and not 0 <= decision.best < self._n_arms:
                raise ValueError(f"the decision names arm {decision.best}; there are {self._n_arms}, from 0")
            return decision

    def add_arm(self) -> int:
        """See `Router`; raises `PluginFailed` if anything is raised."""
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
