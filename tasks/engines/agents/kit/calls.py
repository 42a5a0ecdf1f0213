"""Interface of an agent's attempt to answer one example: its input, its reply and its errors."""

import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

from winnow.storage.json_types import JsonObject
from winnow.tasks.text.printable import masked


class CallFailed(Exception):
    """An attempt has no usable reply.

    Args:
        detail: One sentence for users, without the agent's name.
        reason: One machine-readable word.
        may_retry: Whether the run may be tried again, up to `retries` times.
        wait: Minimum seconds before the next attempt, as requested by the agent; None if not requested.
        said: The reply, which may report the cost of the attempt; None if the agent did not reply.
    """

    def __init__(
        self,
        detail: str,
        *,
        reason: str = "agent_failed",
        may_retry: bool = False,
        wait: float | None = None,
        said: object = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason
        self.may_retry = may_retry
        self.wait = wait
        self.said = said


class Unreachable(CallFailed):
    """The agent cannot be reached now; the example is not the cause."""


class Caller(Protocol):
    """Interface that runs an agent; several threads may call it at the same time."""

    def answer(self, message: JsonObject) -> object:
        """Make one attempt within `timeout`.

        Args:
            message: JSON values: `example` (its fields without the target), `params`, `sampling` and `seed`;
                also `prompt` (a text, or a list of messages) and `limits`, if the candidate has them.

        Returns:
            A text, or a JSON object with `output` and, if known, `usage`, `cost`, `metrics` and `trace`.

        Raises:
            CallFailed: If the attempt gives no usable reply.
            EngineError: If the agent cannot answer any example.
        """

    def close(self) -> None:
        """End all attempts immediately; can be called repeatedly."""


LONGEST_STEP_S = 0.1


class Patience:
    """Time that an attempt may take, without the time in which Winnow itself was stopped.

    Ctrl-Z and a paused container stop the agents of this machine too, and nobody reads what others answer
    meanwhile, so a wait that took longer than it could counts as a few steps.

    Args:
        seconds: All of it.
    """

    def __init__(self, seconds: float) -> None:
        self._left, self._asked = seconds, time.monotonic()

    def step(self) -> float:
        """Seconds to wait before the next look; 0 if no time is left."""
        now = time.monotonic()
        self._left -= min(now - self._asked, 10 * LONGEST_STEP_S)
        self._asked = now
        return max(0.0, min(self._left, LONGEST_STEP_S))


NAME = re.compile(r"\$?([A-Za-z_][A-Za-z0-9_]*)")

SHOWN = 300
"""Maximum characters of an agent's own message that a failure's detail quotes."""

SHORTEST_SECRET = 4
"""Minimum length of a secret value that is masked; masking a shorter one would mask ordinary words."""


def variable_values(names: Iterable[str]) -> dict[str, str]:
    """Values of environment variables by name; raises `ValueError` if a variable is not set."""
    found = {name: os.environ.get(name, "").strip() for name in names}
    for name, value in found.items():
        if not value:
            raise ValueError(f"the environment variable {name} is not set; export it")
    return found


def shown(text: str, hidden: Mapping[str, str], *, is_beginning: bool = False) -> str:
    """Shorten a text to one line of at most `SHOWN` characters, with variables' values masked.

    A long text keeps its end, or its beginning if `is_beginning`. See `masked`.
    """
    text = masked(
        text, {f"${name}": value for name, value in hidden.items() if len(value) >= SHORTEST_SECRET}
    )
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if len(line) <= SHOWN:
        return line
    return f"{line[: SHOWN - 1]}…" if is_beginning else f"…{line[-SHOWN + 1 :]}"
