"""One attempt of an agent to answer one example: what it is given, and how it can fail."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from winnow.storage.json_types import JsonObject


class CallFailed(Exception):
    """An attempt has no usable reply.

    Args:
        detail: One sentence for people, without the agent's name.
        reason: One machine-readable word.
        may_retry: Whether it may be tried again, as far as `retries` allow.
        wait: Seconds that the agent asks to be left alone; None if it does not say.
        said: The reply, where there is one: it may say what the attempt cost.
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
    """There is nothing to call at the moment, which says nothing of the example."""


class Caller(Protocol):
    """Runs an agent. Several threads call it at once."""

    def answer(self, message: JsonObject) -> object:
        """Make one attempt within `timeout`.

        Args:
            message: JSON values: `example` (its fields without the target), `prompt` if there is one (text,
                or a list of messages), `params`, `sampling`, `seed`, and `limits` if there are any.

        Returns:
            A text, or a JSON object with `output` and, if known, `usage`, `cost`, `metrics` and `trace`.

        Raises:
            CallFailed: If there is no reply.
            EngineError: If no example can be answered.
        """

    def close(self) -> None:
        """End all attempts at once; may be called again."""


NAME = re.compile(r"\$?([A-Za-z_][A-Za-z0-9_]*)")

SHOWN = 300
"""Characters of what an agent says that a reason shows."""

SHORTEST_SECRET = 4
"""Characters of a value that is hidden: of a shorter one, every word would be."""


def variable_values(names: Iterable[str]) -> dict[str, str]:
    """Values of environment variables by name; raises `ValueError` for one that is not set."""
    found = {name: os.environ.get(name, "").strip() for name in names}
    for name, value in found.items():
        if not value:
            raise ValueError(f"the environment variable {name} is not set; export it")
    return found


def shown(text: str, hidden: Mapping[str, str], *, is_beginning: bool = False) -> str:
    """A text on one line without the values of variables; of a long one the end, or the beginning.

    The text may have been cut within a value: a part of one at either end is hidden, too.
    """
    longest_first = sorted(hidden.items(), key=lambda each: -len(each[1]))  # one may begin another
    secrets = [(f"${name}", value) for name, value in longest_first if len(value) >= SHORTEST_SECRET]
    for name, value in secrets:
        text = text.replace(value, name)
    for name, value in secrets:
        sizes = range(min(len(text), len(value)), SHORTEST_SECRET - 1, -1)
        if n := next((n for n in sizes if text[0] == value[-n] and value.endswith(text[:n])), 0):
            text = name + text[n:]
        sizes = range(min(len(text), len(value)), SHORTEST_SECRET - 1, -1)
        if n := next((n for n in sizes if text[-1] == value[n - 1] and value.startswith(text[-n:])), 0):
            text = text[:-n] + name
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if len(line) <= SHOWN:
        return line
    return f"{line[: SHOWN - 1]}…" if is_beginning else f"…{line[-SHOWN + 1 :]}"
