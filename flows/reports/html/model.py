"""Data model of a report's page: sections with figures, tables and sample comparisons."""

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
    """The shown beginning of a model's input or output."""

    label: str
    text: str
    shown: int
    """Number of characters that are shown."""
    length: int
    """Number of characters of the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One comparison with its inputs and outputs."""

    heading: str
    mark: Literal["right", "wrong"] | None
    """"right" for full score and "wrong" for score 0, if the example has targets; otherwise None."""
    facts: Sequence[str]
    side_by_side: Sequence[Passage]
    """Input, targets and outputs, as far as they exist."""
    passages: Sequence[Passage]
    """Further texts of the comparison, such as prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGroup:
    """Comparisons with the same kind of result."""

    title: str
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, an explanatory sentence, and a figure, a table or comparisons."""

    name: str
    """Anchor on the page, and part of the picture's file name; letters and hyphens."""
    title: str
    note: str
    figure: Figure | None = None
    """Figure, shown above the table if the section has both."""
    table: Sequence[Row] = ()
    """Rows with equal keys, which are the headings."""
    groups: Sequence[SampleGroup] = ()


def first_of(rows: Sequence[T], campaign: str, view: str) -> tuple[Sequence[T], str]:
    """The rows or names that fit into a figure, and a sentence on omitted ones (empty if all fit)."""
    if len(rows) <= MOST_CANDIDATES:
        return rows, ""
    return (
        rows[:MOST_CANDIDATES],
        f" The first {MOST_CANDIDATES} of {len(rows)} are shown; winnow query {campaign} {view} shows all.",
    )
