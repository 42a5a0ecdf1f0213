"""The parts of a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from plotly.graph_objects import Figure

from winnow.storage.json_types import Row

T = TypeVar("T")

MOST_CANDIDATES = 40
"""Rows that a figure can show and a reader can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text that a model was given or wrote, as far as it is shown."""

    label: str
    text: str
    shown: int
    """Characters that were read of it."""
    length: int
    """Characters of the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One comparison to read."""

    heading: str
    mark: Literal["right", "wrong"] | None
    """Whether the answer has the full score of an example that names its targets, or none of it."""
    facts: Sequence[str]
    side_by_side: Sequence[Passage]
    """Input, target and outputs, as far as there are any."""
    passages: Sequence[Passage]
    """What stands behind them, such as prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGroup:
    """Comparisons that ended alike."""

    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, a sentence that says how to read what follows, and a figure, a table or comparisons."""

    name: str
    """Letters and hyphens: the anchor on the page and the file name of the picture."""
    title: str
    note: str
    figure: Figure | None = None
    """Stands above the table, where there are both."""
    table: Sequence[Row] = ()
    """Rows with the same columns, which are their headings."""
    groups: Sequence[SampleGroup] = ()


def first_of(rows: Sequence[T], campaign: str, view: str) -> tuple[Sequence[T], str]:
    """The rows or names that fit into a figure, and a sentence about those that do not."""
    if len(rows) <= MOST_CANDIDATES:
        return rows, ""
    return (
        rows[:MOST_CANDIDATES],
        f" Shown are the first {MOST_CANDIDATES} of {len(rows)}; winnow query {campaign} {view} gives all.",
    )
