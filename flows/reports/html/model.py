"""The parts of a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from plotly.graph_objects import Figure

from winnow.storage.json_types import Row

T = TypeVar("T")

MOST_CANDIDATES = 40
"""Maximum number of rows in a figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The shown part of a model's input or output."""

    label: str
    text: str
    shown: int
    """Number of characters of the text that are shown."""
    length: int
    """Characters of the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One comparison with its inputs and outputs."""

    heading: str
    mark: Literal["right", "wrong"] | None
    """"right" for a full score on an example with targets, "wrong" for score 0, otherwise None."""
    facts: Sequence[str]
    side_by_side: Sequence[Passage]
    """Those of input, target and outputs that exist."""
    passages: Sequence[Passage]
    """Texts related to the samples, such as prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGroup:
    """Comparisons with the same kind of result."""

    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, an explanatory sentence, and a figure, a table or comparisons."""

    name: str
    """Letters and hyphens: the anchor on the page and the file name of the picture."""
    title: str
    note: str
    figure: Figure | None = None
    """Shown above the table if the section has both."""
    table: Sequence[Row] = ()
    """Rows with the same columns, which are their headings."""
    groups: Sequence[SampleGroup] = ()


def first_of(rows: Sequence[T], campaign: str, view: str) -> tuple[Sequence[T], str]:
    """The rows or names that fit into a figure, and a sentence on those omitted."""
    if len(rows) <= MOST_CANDIDATES:
        return rows, ""
    return (
        rows[:MOST_CANDIDATES],
        f" Shown are the first {MOST_CANDIDATES} of {len(rows)}; winnow query {campaign} {view} gives all.",
    )
