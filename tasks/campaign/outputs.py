"""The judged part of an output, and the faults of an output.

Faults are derived only from the output and its candidate's settings, so they need not be stored.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.chat import END, START, Reasoning
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.engines.protocol import Structure

if TYPE_CHECKING:
    import regex

Fault = Literal["empty", "thoughts", "in-thoughts", "stop-ignored", "stop-kept", "structure"]
"""A fault of an output:

* empty: its judged part is empty, and no reasoning was separated from it.
* thoughts: its judged part contains the model's reasoning.
* in-thoughts: it ends inside the reasoning, before any answer.
* stop-ignored: it continues after a stop sequence.
* stop-kept: it ends with its stop sequence.
* structure: it cannot be the beginning of its `structured_output`.
"""

PATTERN_SECONDS = 0.05
"""Time limit, in seconds, to match one output with a `structured_output` pattern; after it, no fault is
reported.
"""

LONGEST_MATCHED = 10_000
"""Maximum length of an output that is matched with a pattern, in characters."""


class Settings(NamedTuple):
    """Settings of a candidate that determine the form of its outputs."""

    stop: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    structure: Structure | None = None
    is_agent: bool = False
    """Whether an agent wrote the outputs; its trace is stored where a model's reasoning would be."""

    @classmethod
    def from_record(cls, model: JsonView, sampling: JsonView) -> "Settings":
        """Create the settings of a stored candidate from its model and its sampling."""
        reasoning, structure = model.get("reasoning"), sampling.get("structure")
        return cls(
            stop=tuple(sampling.get("stop") or ()),
            reasoning=None if reasoning is None else Reasoning(*reasoning),
            structure=None if structure is None else Structure(*structure),
            is_agent=model.get("provider") in AGENTS,
        )


class Output(NamedTuple):
    """A stored output: the fields that faults depend on."""

    text: str
    reasoning: str | None
    finish_reason: str
    """"stop" or "length"."""


def judged_text(text: str, settings: Settings) -> str:
    """The judged part of a stored output: everything before its first stop sequence.

    Servers usually end an output there; some ignore stop sequences or keep them. A stop sequence inside
    reasoning that a parser keeps in the output (`strip: false`) does not count.
    """
    found = _stop_in(text, settings)
    return text if found is None else text[: found[0]]


def faults_of(output: Output, settings: Settings) -> list[Fault]:
    """Find the faults of an output."""
    found: list[Fault] = []
    text = judged_text(output.text, settings)
    if text.strip():
        if _is_within(text, settings.reasoning) and output.finish_reason != "length":
            found.append("in-thoughts")
        elif holds_thoughts(text, settings.reasoning):
            found.append("thoughts")
    else:
        thinks = not settings.is_agent and (output.reasoning or "").strip()
        found.append("in-thoughts" if thinks else "empty")
    if (stop := _stop_in(output.text, settings)) is not None:
        found.append("stop-ignored" if output.text[stop[1] :].strip() else "stop-kept")
    if text.strip() and settings.structure is not None and not can_begin(text, settings.structure):
        found.append("structure")
    return found


def _stop_in(text: str, settings: Settings) -> tuple[int, int] | None:
    """Start and end of the stop sequence that is complete first.

    Among several that end at the same position, the first in the settings.
    """
    if not settings.stop:
        return None
    start = _end_of_thoughts(text, settings.reasoning)
    places = [(at, at + len(each)) for each in settings.stop if (at := text.find(each, start)) >= 0]
    return min(places, key=itemgetter(1)) if places else None


def _end_of_thoughts(text: str, reasoning: Reasoning | None) -> int:
    """Position at which the reasoning inside a text ends.

    The text's end if the reasoning does not end; 0 if the text contains no reasoning.
    """
    if reasoning is None or reasoning.parser == "server" or reasoning.strip:
        return 0
    end = text.find(END)
    if end >= 0:
        return end + len(END)
    return len(text) if _is_within(text, reasoning) else 0


def _is_within(text: str, reasoning: Reasoning | None) -> bool:
    """Whether a text that keeps its reasoning (`strip: false`) ends inside it."""
    if reasoning is None or reasoning.parser == "server" or reasoning.strip:
        return False
    return (reasoning.begins_inside or text.lstrip().startswith(START)) and END not in text


OPENINGS = "<[◁"
"""First characters of all tags around reasoning."""
OF_MODELS = r"think|seed:think|thought|analysis_thought"
OF_PROMPTS = r"thinking|thoughts|reasoning|reflection|scratchpad"
"""Names of tags that prompts also request; they count only at the beginning of an output."""

_BEGINNING = re.compile(
    rf"\s*(?:<\|?(?:{OF_MODELS}|{OF_PROMPTS})\|?>|\[THINK\]|◁think▷|<\|channel\|>\s*(?:analysis|thought))",
    re.IGNORECASE,
)
_END = re.compile(rf"</(?:{OF_MODELS})>|\[/THINK\]|◁/think▷|<\|channel\|>\s*final", re.IGNORECASE)


def holds_thoughts(text: str, reasoning: Reasoning | None) -> bool:
    """Whether a judged output contains a model's reasoning, detected by common tags."""
    if reasoning is not None and reasoning.parser == "think-tags" and not reasoning.strip:
        return False  # the file keeps the reasoning on purpose
    if text.startswith("analysis") and "assistantfinal" in text:
        return True  # gpt-oss, without the special tokens that separate its channels
    if not any(each in text for each in OPENINGS):
        return False
    return _BEGINNING.match(text) is not None or _END.search(text) is not None


def has_think_tags(text: str) -> bool:
    """Whether the reasoning in a text is between tags of the parser think-tags."""
    return text.lstrip().startswith(START) or END in text


def can_begin(text: str, structure: Structure) -> bool:
    """Whether a text can be the beginning of a structure; True for a grammar."""
    if structure.kind == "choice":
        return any(each.startswith(text.strip()) for each in json.loads(structure.value))
    if structure.kind == "json_schema":
        return _can_begin_json(text, json.loads(structure.value))
    if structure.kind == "regex" and len(text) <= LONGEST_MATCHED:
        return _can_match(structure.value, text)
    return True


def _can_begin_json(text: str, schema: object) -> bool:
    text = text.strip()
    is_for_object = isinstance(schema, dict) and schema.get("type") == "object"
    if is_for_object and not text.startswith("{"):
        return not text
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return _is_unfinished(error, text)
    except (ValueError, RecursionError):  # too long a number, or too deep a nesting
        return True
    if text[end:].strip():
        return False
    required = schema.get("required") if isinstance(schema, dict) and isinstance(value, dict) else None
    return not isinstance(required, Sequence) or all(each in value for each in required)


WORDS = ("true", "false", "null")
_IN_NUMBER = re.compile(r"-?|\.|\.?[0-9]*[eE][-+]?")
"""Matches the rest of a JSON text that ends inside a number."""


def _is_unfinished(error: json.JSONDecodeError, text: str) -> bool:
    """Whether a text is invalid JSON only because it is truncated."""
    rest = text[error.pos :]
    is_within_text = error.msg.startswith("Unterminated string") or (
        error.msg.startswith("Invalid \\") and len(rest) < len("\\ud800")
    )
    is_within_word = any(each.startswith(rest) for each in WORDS)
    return is_within_text or is_within_word or _IN_NUMBER.fullmatch(rest) is not None


_TOO_SLOW: set[str] = set()
"""Patterns that exceeded the time limit once and are not used again."""


def _can_match(pattern: str, text: str) -> bool:
    found = None if pattern in _TOO_SLOW else _compiled(pattern)
    if found is None:
        return True
    try:
        return found.fullmatch(text, partial=True, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        _TOO_SLOW.add(pattern)
        return True


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> "regex.Pattern[str] | None":
    """Compile a pattern; None if it uses another dialect of regular expressions."""
    import regex

    try:
        return regex.compile(pattern)
    except regex.error:
        return None
