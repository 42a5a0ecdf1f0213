"""Errors for users, each with one sentence on the problem and its remedy.

* WinnowError          the message names the place, the value and the remedy
  - ContradictoryState the selector's state is impossible             (`winnow db check`; report it)
  - JudgeBroken        a plug-in judge fails on everything            (fix it)
  - LabelMissing       a label of a round to be judged is missing     (label the example)
  - PluginFailed       a plug-in raised an exception                  (fix it)
  - SpecError          the campaign cannot run as specified           (fix the spec)
    - SpecMistakes     several mistakes in the file, one per line     (fix them all)
    - DatasetError     the data file, or how its columns are mapped   (fix the file or `dataset`)
    - TemplateError    a prompt template, or a value put into it      (fix the template)
    - JudgeError       the judge's type or one of its parameters      (fix `judge`)
    - ServedModelDiffers   another server serves a different model    (set `model_base_url` back)
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

from winnow.tasks.text.printable import one_line, printable, shortened


class WinnowError(Exception):
    """Root of all errors that a user can correct; any other exception is a bug.

    Messages quote untrusted files, servers and models. So as text they are printable, on one line, and of
    bounded length.
    """

    has_lines: ClassVar[bool] = False
    """Whether the message intentionally has several lines."""

    def __str__(self) -> str:
        return shortened((printable if self.has_lines else one_line)(self._sentence()))

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook displays instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]

    def _sentence(self) -> str:
        return super().__str__()


class ContradictoryState(WinnowError):
    """The selector's state after a round is impossible for any scores."""

    def __init__(self, campaign: str, round_: int, why: str) -> None:
        super().__init__(
            f"{campaign}: round {round_} is not recorded, as {why}; winnow db check says whether the "
            "database was changed by others"
        )


class LabelMissing(WinnowError):
    """A human label that a round needs is missing."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"example {key!r} has no label; label it with winnow label, then run the campaign again"
        )


class SpecError(WinnowError):
    """The campaign cannot run as specified.

    Attributes:
        message: One sentence: what is wrong and what to do.
        path: The key in the spec, such as "prompts[0].template"; None if the error is not about a key.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def _sentence(self) -> str:
        return self.message if self.path is None else f"{self.path}: {self.message}"


class SpecMistakes(SpecError):
    """Several mistakes in a campaign's file, one on each line."""

    has_lines = True


class DatasetError(SpecError):
    """The data file cannot be read, or does not match the spec."""


class TemplateError(SpecError):
    """A template cannot be compiled, or cannot be rendered for an example."""


class JudgeError(SpecError):
    """The judge does not exist or does not accept these parameters."""


class ServedModelDiffers(SpecError):
    """A server that replaced another one serves a model with different outputs."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that suggests the nearest known name; empty if none is near."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def in_quotes(given: object) -> str:
    """The end of a message about a value that must be text: how to quote it in YAML."""
    reads = (
        "; YAML reads yes, no, on and off without them as true and false" if isinstance(given, bool) else ""
    )
    return f"; put it in quotes{reads}"


MOST_LISTED = 12
"""Maximum number of known names in a message.

With more names, the message has only the nearest ones if a command lists all of them.
"""
NEAREST = 5


def unknown_name(
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    command: str | None = None,
    meant: str | None = None,
) -> str:
    """The error message for an unknown name.

    Args:
        kind: The word for such a name, such as "judge".
        name: The name that the user wrote.
        known: The valid names.
        command: A command that lists the valid names.
        meant: The correct name to suggest, if known; None suggests the nearest one.
    """
    choices = sorted(known)
    question = did_you_mean(name, choices) if meant is None else f"did you mean {meant!r}?"
    if command is not None and len(choices) > MOST_LISTED:
        nearest = get_close_matches(name, choices, n=NEAREST, cutoff=0.0)
        listed = f"nearest: {', '.join(nearest)}; all: {command}"
        return f"unknown {kind} {name!r}; {question}{' ' * bool(question)}{listed}"
    return (
        f"unknown {kind} {name!r}; {question}{' ' * bool(question)}available: {', '.join(choices) or 'none'}"
    )
