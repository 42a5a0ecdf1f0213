"""Parse an agent's reply: an output with tokens, cost and metrics. Replies are untrusted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from winnow.tasks.engines.agents.kit.settings import COST
from winnow.tasks.engines.protocol import TOKEN_LIMIT
from winnow.tasks.text.canonical_json import canonical_json

MOST_TRACE = 65_536
"""Maximum characters of a trace that are kept."""

MOST_METRICS = 100
LONGEST_METRIC = 100
MOST_NESTED = 64

LARGEST = 1e18
"""Largest number that a reply may report, so that sums and means over all replies stay finite."""

USAGE = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
}
"""Names of the token counts in `usage`: the common name, then OpenAI's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A parsed reply of an agent."""

    output: str
    input_tokens: int = 0
    output_tokens: int = 0
    numbers: Mapping[str, float] | None = None
    """The metrics that the agent reported, and its cost as `cost`; None if it reported neither."""
    trace: str | None = None

    @property
    def cost(self) -> float | None:
        """Price of the run; None if it was not reported."""
        return None if self.numbers is None else self.numbers.get(COST)


def is_reply(said: object) -> bool:
    """Whether a value is an object with the key `output`, and not itself the output."""
    return isinstance(said, Mapping) and "output" in said


def read_reply(said: object) -> Reply:
    """Parse a reply: a text, or an object with `output`; any other JSON value is the output.

    Raises:
        ValueError: If a key of the reply is invalid; the message names the key and what it must be.
    """
    refuse_depth(said)
    if not isinstance(said, Mapping) or "output" not in said:
        return Reply(output=_text(said))
    tokens = _tokens(said.get("usage"))
    numbers = _numbers(said.get("metrics"))
    if (cost := said.get("cost")) is not None:
        numbers[COST] = _number("cost", cost)
        if numbers[COST] < 0.0:
            raise ValueError(f"cost must be 0 or more, got {cost!r}")
    trace = said.get("trace")
    return Reply(
        output=_text(said["output"]),
        **tokens,
        numbers=numbers or None,
        trace=None if trace is None else _shortened(_text(trace)),
    )


def spent_of(said: object) -> Reply | None:
    """Tokens and cost that a failed attempt reported; None if it reported none or invalid ones."""
    if not isinstance(said, Mapping):
        return None
    try:
        found = read_reply({**said, "output": "", "trace": None})
    except ValueError:
        return None
    return found if found.input_tokens or found.output_tokens or found.cost else None


def json_or_text(content: bytes) -> object:
    """Object with `output` that a program printed, or else the whole printed text.

    Raises:
        ValueError: If the printed bytes are not UTF-8.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("printed text that is not UTF-8") from error
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if is_reply(found):
            return found
    return text.removesuffix("\n").removesuffix("\r")


def refuse_depth(value: object) -> None:
    """Raise `ValueError` for values nested deeper than any reply."""
    within: list[object] = [value]
    for _ in range(MOST_NESTED + 1):
        if not within:
            return
        parts = [part for each in within for part in _parts_of(each)]
        within = [part for part in parts if isinstance(part, Mapping | list | tuple)]
    raise ValueError(f"the reply has more than {MOST_NESTED} levels of brackets")


def _parts_of(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("the output is null; reply with a text")
    try:
        return canonical_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the output has the type {type(value).__name__}, which is not JSON") from error


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_TRACE else f"{text[: MOST_TRACE - 1]}…"


def _tokens(usage: object) -> dict[str, int]:
    if usage is None:
        return {}
    if not isinstance(usage, Mapping):
        raise ValueError(f"usage must be an object with input_tokens and output_tokens, got {_quoted(usage)}")
    found: dict[str, int] = {}
    for field, names in USAGE.items():
        value = next((usage[name] for name in names if usage.get(name) is not None), 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < TOKEN_LIMIT:
            raise ValueError(f"usage.{field} must be a whole number in [0, 2**26), got {_quoted(value)}")
        found[field] = value
    return found


def _numbers(metrics: object) -> dict[str, float]:
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping) or len(metrics) > MOST_METRICS:
        raise ValueError(
            f"metrics must be an object of at most {MOST_METRICS} numbers, got {_quoted(metrics)}"
        )
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_METRIC or name == COST:
            raise ValueError(
                f"a metric needs a name of at most {LONGEST_METRIC} characters that is not {COST!r}, got "
                f"{_quoted(name)}"
            )
        found[name] = _number(f"metrics.{name}", value)
    return found


def _number(place: str, value: object) -> float:
    if isinstance(value, bool | int | float) and -LARGEST <= value <= LARGEST:
        return float(value)
    raise ValueError(f"{place} must be a number in [-1e18, 1e18], got {_quoted(value)}")


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"
