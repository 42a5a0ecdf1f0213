"""The page Matrix: scores by example and candidate; a click on a cell shows its outputs."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard.db import on_campaign, read_session
from winnow.flows.reports.dashboard.frames import table_frame
from winnow.flows.reports.dashboard.screens.comparison_view import show_comparison
from winnow.flows.reports.dashboard.widgets import (
    TABLE_HEADING,
    TABLE_ROW,
    opened_pages,
    short_labels,
    shown_of_pages,
    whole_names,
)
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.text_table import shortened_apart
from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.queries import browse, matrix
from winnow.storage.queries.matrix import Cell, MatrixRow, Pattern
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.tag_counts import TagCounts, TagValue, values_of
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.breakdowns import tags_of
from winnow.tasks.queries.views import ask
from winnow.tasks.text.patterns import compiled
from winnow.tasks.text.phrases import example_name, rounded

ROWS = 50
"""Number of examples per page."""
TABLE_HEIGHT = 420
"""Maximum height of the table, in pixels."""
EXAMPLE, TARGET = "example", "target"
"""Names of the columns before those of the candidates."""
LONGEST_HEADING = 24
"""Maximum characters of a candidate's name above its column."""
LONGEST_TARGET = LONGEST_OUTPUT = 60
"""Maximum characters of a target or an output in a cell."""

STARTS = "starts of the matrix"
"""Session key of the campaign with the filter, and of the example at which each opened page begins."""

WRONG, RIGHT = (213, 94, 0), (0, 114, 178)
"""Colours for scores of 0 and 1, which colour-blind readers can distinguish."""


def show() -> None:
    """Show the page."""
    on_campaign("Matrix", _show)


def _show(campaign: CampaignRecord, _: Sequence[CampaignRecord]) -> None:
    if traits_of(campaign.objective).compares_pairs:
        st.text("Duels do not score single candidates. To read duels, open Comparisons.")
        return
    with read_session() as session:
        ranked = [row["candidate"] for row in ask(Look(session, campaign), "leaderboard")]
    _browse(campaign, ranked)


def _browse(campaign: CampaignRecord, ranked: Sequence[str]) -> None:
    wanted = ask_filter(campaign, ranked)
    chosen = wanted.candidates
    starts = opened_pages(STARTS, (campaign.id, *wanted), partial(_first, campaign))
    with read_session() as session:
        rows = matrix.matrix_rows(
            session,
            campaign.id,
            chosen,
            pattern=wanted.pattern,
            words="" if wanted.is_regex else wanted.words,
            reason=wanted.reason,
            fits=wanted.fits(),
            begin=starts[-1],
            most=ROWS + 1,
        )
    if len(chosen) == 2:
        _show_pair(campaign, *chosen)
    if not rows:
        st.text("No example matches.")
        return
    outputs = _outputs(rows[:ROWS]) if st.toggle("Outputs in the cells", value=True) else {}
    cell = _table(rows[:ROWS], chosen, outputs) or _linked(rows, chosen)
    _turn(starts, rows)
    if cell is not None:
        show_comparison(campaign, cell.comparison_id, whole=st.toggle("Whole texts"))


def _first(campaign: CampaignRecord) -> list[int]:
    """Start of the first page: when the page is opened, the example in its address; else 0."""
    key = st.query_params.get(EXAMPLE)
    if STARTS in st.session_state or key is None:
        return [0]
    with read_session() as session:
        return [matrix.example_id(session, campaign.id, key) or 0]


def _show_pair(campaign: CampaignRecord, first: str, second: str) -> None:
    with read_session() as session:
        found = matrix.pair(session, campaign.id, first, second)
    if found.mean_difference is None:
        st.text("No example has scores of both candidates.")
        return
    even = found.both - found.first_higher - found.second_higher
    st.text(
        readable(
            f"On {found.both:,} examples with scores of both: {first} is higher on {found.first_higher:,}, "
            f"{second} on {found.second_higher:,}, and they are equal on {even:,}; mean difference "
            f"{rounded(found.mean_difference, '+')}."
        )
    )
    st.caption("This describes only the examples with both scores; the answer says what is proven.")


def _outputs(rows: Sequence[MatrixRow]) -> dict[int, str | None]:
    """Id of the comparison -> beginning of its output, for every cell."""
    ids = [cell.comparison_id for row in rows for cell in row.cells.values()]
    with read_session() as session:
        return browse.output_beginnings(session, ids, characters=LONGEST_OUTPUT)


def _table(
    rows: Sequence[MatrixRow], chosen: Sequence[str], outputs: Mapping[int, str | None]
) -> Cell | None:
    """Show the table; return the clicked cell, or None if no cell with a comparison was clicked."""
    st.caption("Click a cell to read its outputs. Empty: not evaluated.")
    styled = _styled(rows, chosen, outputs)
    names = dict(zip(styled.columns[2:], chosen, strict=True))
    short = shortened_apart(list(names), LONGEST_HEADING)
    headings = dict(zip(names, short, strict=True))
    event = st.dataframe(
        styled,
        hide_index=True,
        height=min(TABLE_HEIGHT, TABLE_HEADING + TABLE_ROW * len(rows)),
        key=f"matrix-{rows[0].example_id}-{rows[-1].example_id}-{len(chosen)}",
        on_select="rerun",
        selection_mode="single-cell",
        placeholder="",
        column_config={
            EXAMPLE: st.column_config.TextColumn(pinned=True),
            **{name: st.column_config.TextColumn(heading) for name, heading in headings.items()},
        },
    )
    for row, column in event["selection"]["cells"]:
        cell = rows[row].cells.get(names.get(column, "")) if row < len(rows) else None
        if cell is not None:
            st.query_params[EXAMPLE] = rows[row].example
            st.query_params[CANDIDATE] = names[column]
            return cell
    return None


def _linked(rows: Sequence[MatrixRow], chosen: Sequence[str]) -> Cell | None:
    """The cell named in the page's address if it is on the page, else the first cell; None without cells."""
    wanted = (st.query_params.get(EXAMPLE), st.query_params.get(CANDIDATE))
    cells = [(row.example, name, row.cells[name]) for row in rows for name in chosen if name in row.cells]
    return next((cell for example, name, cell in cells if (example, name) == wanted), None) or (
        cells[0][2] if cells else None
    )


def _styled(rows: Sequence[MatrixRow], chosen: Sequence[str], outputs: Mapping[int, str | None]) -> Styler:
    frame = table_frame(
        [EXAMPLE, TARGET, *chosen],
        [
            [
                example_name(row.example, row.example_number),
                _target(row),
                *(_shown(row.cells.get(name), outputs) for name in chosen),
            ]
            for row in rows
        ],
    )
    colours = [["", "", *(_colour(row.cells.get(name)) for name in chosen)] for row in rows]
    return frame.style.apply(
        lambda _: pd.DataFrame(colours, index=frame.index, columns=frame.columns), axis=None
    )


def _target(row: MatrixRow) -> str:
    text = ", ".join(str(each) for each in row.targets)
    return text if len(text) <= LONGEST_TARGET else f"{text[:LONGEST_TARGET]}…"


def _shown(cell: Cell | None, outputs: Mapping[int, str | None]) -> str:
    if cell is None:
        return ""
    output = outputs.get(cell.comparison_id)
    score = f"no score: {cell.reason}" if cell.outcome is None else _score(cell.outcome)
    return score if output is None else f"{score} · {output}"


def _score(outcome: float) -> str:
    return f"{outcome:g}" if outcome.is_integer() else rounded(outcome)


def _colour(cell: Cell | None) -> str:
    """CSS of a cell's background: orange for outcomes below 1/2, else blue; paler towards 1/2.

    Grey if the comparison has no outcome; empty if the cell has no comparison.
    """
    if cell is None:
        return ""
    if cell.outcome is None:
        return "background-color: rgba(127, 127, 127, 0.35)"
    end = RIGHT if cell.outcome >= 0.5 else WRONG
    strength = 0.15 + 0.55 * min(1.0, abs(2.0 * cell.outcome - 1.0))
    return f"background-color: rgba({end[0]}, {end[1]}, {end[2]}, {strength:.2f})"


def _turn(starts: list[int], rows: Sequence[MatrixRow]) -> None:
    """Draw buttons that turn the page, also by keyboard."""
    previous, following, where = st.columns([2, 2, 5], vertical_alignment="center")
    if previous.button("Previous", disabled=len(starts) < 2, width="stretch", shortcut="Alt+P"):
        starts.pop()
        st.rerun()
    if following.button("Next", disabled=len(rows) <= ROWS, width="stretch", shortcut="Alt+N"):
        starts.append(rows[ROWS].example_id)
        st.rerun()
    where.caption(shown_of_pages(len(starts), len(rows), most=ROWS))


SHOWN_FIRST = 8
"""Number of candidates, the best ones, that are shown as columns by default."""
CANDIDATE = "candidate"
"""Parameter of the page's address: name of the candidate of the open cell."""
ANY = "any"
TAGS = "tags of the matrix"
"""Session key of the tags that were read from the examples."""
PATIENCE_S = 10.0
"""Maximum seconds of a search by regular expression, per page."""

PATTERNS: dict[Pattern, str] = {
    "all": "all evaluated",
    "disagreements": "candidates disagree",
    "all wrong": "all wrong (scores below 0.5)",
    "all right": "all right (scores of 0.5 or more)",
    "unscored": "at least one has no score",
}


class MatrixFilter(NamedTuple):
    """The candidates and conditions that the reader selected."""

    candidates: tuple[str, ...]
    pattern: Pattern
    reason: str | None
    """Only examples on which a candidate's score is missing for this reason; None for all examples."""
    tag: TagValue | None
    words: str
    is_regex: bool
    """Whether `words` is a regular expression."""

    def fits(self) -> Callable[[str, JsonView], bool] | None:
        """A function that checks an example's key and fields for the tag and the regular expression.

        None if neither is selected.

        Raises:
            WinnowError: If the regular expression is invalid.
        """
        if self.tag is None and not self.is_regex:
            return None
        try:
            pattern = compiled(self.words) if self.is_regex else None
        except ValueError as error:
            raise WinnowError(str(error)) from error
        until = time.monotonic() + PATIENCE_S

        def fits(key: str, fields: JsonView) -> bool:
            if self.tag is not None and self.tag[1] not in values_of(fields, self.tag[0]):
                return False
            if pattern is None:
                return True
            text = f"{key}\n{json.dumps(fields, ensure_ascii=False)}"
            try:
                return pattern.search(text, timeout=max(0.001, until - time.monotonic())) is not None
            except TimeoutError as error:
                raise WinnowError(
                    f"the search for {self.words[:80]!r} took more than {PATIENCE_S:g} s; search for words "
                    "instead"
                ) from error

        return fits


def ask_filter(campaign: CampaignRecord, ranked: Sequence[str]) -> MatrixFilter:
    """Draw the boxes above the table, and return the selected candidates and conditions."""
    first = list(ranked[:SHOWN_FIRST])
    linked = st.query_params.get(CANDIDATE)
    if linked is not None and linked in ranked and linked not in first:
        first[-1:] = [linked]
    key, short = f"matrix-candidates-{campaign.id}", short_labels(ranked)
    # Not as a default, because the button below sets the box through the session.
    st.session_state.setdefault(key, first)
    chosen = st.multiselect(
        "Candidates",
        ranked,
        format_func=short.__getitem__,
        key=key,
        help=whole_names(st.session_state[key], short),
    )
    if len(chosen) < len(ranked):
        said, everyone = st.columns([5, 2], vertical_alignment="center")
        said.caption(f"{len(chosen)} of {len(ranked)} candidates. The best {SHOWN_FIRST} are shown at first.")
        everyone.button("Show all candidates", on_click=partial(st.session_state.__setitem__, key, [*ranked]))
    with read_session() as session:
        reasons = browse.choices(session, campaign.id).reasons
    pattern_box, reason_box, tag_box = st.columns(3)
    pattern: Pattern = pattern_box.selectbox(
        "Examples", list(PATTERNS), format_func=lambda each: PATTERNS[each], key="matrix-pattern"
    )
    reason = _choice(reason_box, "Reason", reasons)
    tags = {": ".join(each): each for each in _tags(campaign)}
    tag = _choice(tag_box, "Tag", list(tags))
    words_box, regex_box = st.columns([5, 2], vertical_alignment="bottom")
    words = words_box.text_input("Search", placeholder="in keys and fields of examples").strip()
    is_regex = regex_box.checkbox("regular expression")
    return MatrixFilter(tuple(chosen), pattern, reason, tags.get(tag or ""), words, is_regex and bool(words))


def _choice(place: DeltaGenerator, label: str, options: Sequence[str]) -> str | None:
    """Show a box of options, and return the chosen one or None; without options no box is shown."""
    if not options:
        return None
    return place.selectbox(label, options, index=None, placeholder=ANY, format_func=readable)


def _tags(campaign: CampaignRecord) -> list[TagValue]:
    """Pairs of a tag and a value in the campaign's examples; cached in the reader's session."""
    if not (wanted := tags_of(campaign)):
        return []
    counts: TagCounts = st.session_state.setdefault(TAGS, TagCounts())
    with read_session() as session:
        sizes, _ = counts.look(session, campaign, wanted, ())
    return sorted(sizes, key=lambda each: (wanted.index(each[0]), each[1]))
