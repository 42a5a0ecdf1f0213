"""Examples by candidates: a cell per score, the outputs behind the clicked cell, and a comparison of two."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard.db import asking, on_campaign
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
from winnow.tasks.text.phrases import rounded

ROWS = 50
"""Number of examples per page."""
TABLE_HEIGHT = 420
"""Pixels."""
EXAMPLE, TARGET = "example", "target"
"""Columns before those of the candidates."""
LONGEST_HEADING = 24
"""Maximum characters of a candidate's name above its column."""
LONGEST_TARGET = LONGEST_OUTPUT = 60
"""Maximum characters of a target or an output in a cell."""

STARTS = "starts of the matrix"
"""Session key: the campaign and conditions, and the example at which each opened page begins."""

WRONG, RIGHT = (213, 94, 0), (0, 114, 178)
"""Colours for scores of 0 and 1, distinguishable with colour blindness."""


def show() -> None:
    """The page."""
    on_campaign("Matrix", _show)


def _show(campaign: CampaignRecord, _: Sequence[CampaignRecord]) -> None:
    if traits_of(campaign.objective).compares_pairs:
        st.text("Duels give single candidates no scores: see Comparisons.")
        return
    with asking() as session:
        ranked = [row["candidate"] for row in ask(Look(session, campaign), "leaderboard")]
    _browse(campaign, ranked)


def _browse(campaign: CampaignRecord, ranked: Sequence[str]) -> None:
    asked = ask_for(campaign, ranked)
    chosen = asked.candidates
    starts = opened_pages(STARTS, (campaign.id, *asked), partial(_first, campaign))
    with asking() as session:
        rows = matrix.matrix_rows(
            session,
            campaign.id,
            chosen,
            pattern=asked.pattern,
            words="" if asked.is_regex else asked.words,
            reason=asked.reason,
            fits=asked.fits(),
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
    """The start of the first page: the example in the page's address when the page is opened."""
    key = st.query_params.get(EXAMPLE)
    if STARTS in st.session_state or key is None:
        return [0]
    with asking() as session:
        return [matrix.example_id(session, campaign.id, key) or 0]


def _show_pair(campaign: CampaignRecord, first: str, second: str) -> None:
    with asking() as session:
        found = matrix.pair(session, campaign.id, first, second)
    if found.mean_difference is None:
        st.text("No example has a score of both.")
        return
    even = found.both - found.first_higher - found.second_higher
    st.text(
        readable(
            f"On {found.both:,} examples with scores of both: {first} is higher on {found.first_higher:,}, "
            f"{second} on {found.second_higher:,}, and they are equal on {even:,}; mean difference "
            f"{rounded(found.mean_difference, '+')}."
        )
    )
    st.caption("This describes the chosen examples only; see the answer for what is proven.")


def _outputs(rows: Sequence[MatrixRow]) -> dict[int, str | None]:
    """The beginning of the output behind each cell, by id of the comparison."""
    ids = [cell.comparison_id for row in rows for cell in row.cells.values()]
    with asking() as session:
        return browse.output_beginnings(session, ids, characters=LONGEST_OUTPUT)


def _table(
    rows: Sequence[MatrixRow], chosen: Sequence[str], outputs: Mapping[int, str | None]
) -> Cell | None:
    """Show the table; return the clicked cell, if it has a comparison."""
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
    """The cell in the page's address, if it is on the page; else the first one."""
    wanted = (st.query_params.get(EXAMPLE), st.query_params.get(CANDIDATE))
    cells = [(row.example, name, row.cells[name]) for row in rows for name in chosen if name in row.cells]
    return next((cell for example, name, cell in cells if (example, name) == wanted), None) or (
        cells[0][2] if cells else None
    )


def _styled(rows: Sequence[MatrixRow], chosen: Sequence[str], outputs: Mapping[int, str | None]) -> Styler:
    frame = table_frame(
        [EXAMPLE, TARGET, *chosen],
        [
            [row.example, _target(row), *(_shown(row.cells.get(name), outputs) for name in chosen)]
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
    """CSS of a cell's background, from orange (outcome 0) to blue (outcome 1), paler towards 1/2.

    1/2 itself is pale blue. Grey if the comparison has no outcome; empty if the cell has no comparison.
    """
    if cell is None:
        return ""
    if cell.outcome is None:
        return "background-color: rgba(127, 127, 127, 0.35)"
    end = RIGHT if cell.outcome >= 0.5 else WRONG
    strength = 0.15 + 0.55 * min(1.0, abs(2.0 * cell.outcome - 1.0))
    return f"background-color: rgba({end[0]}, {end[1]}, {end[2]}, {strength:.2f})"


def _turn(starts: list[int], rows: Sequence[MatrixRow]) -> None:
    """Buttons that turn the page, also by keyboard."""
    previous, following, where = st.columns([2, 2, 5], vertical_alignment="center")
    if previous.button("Previous", disabled=len(starts) < 2, width="stretch", shortcut="Alt+P"):
        starts.pop()
        st.rerun()
    if following.button("Next", disabled=len(rows) <= ROWS, width="stretch", shortcut="Alt+N"):
        starts.append(rows[ROWS].example_id)
        st.rerun()
    where.caption(shown_of_pages(len(starts), len(rows), most=ROWS))


SHOWN_FIRST = 8
"""Candidates shown as columns by default: the best ones."""
CANDIDATE = "candidate"
"""Address parameter, besides the example."""
ANY = "any"
TAGS = "tags of the matrix"
"""Session key: tags read from the examples."""
PATIENCE_S = 10.0
"""Seconds for a regular expression search per page."""

PATTERNS: dict[Pattern, str] = {
    "all": "all that were asked",
    "disagreements": "candidates disagree",
    "all wrong": "all wrong (scores below 0.5)",
    "all right": "all right (scores of 0.5 or more)",
    "unscored": "one has no score",
}


class Asked(NamedTuple):
    """The selected candidates and conditions."""

    candidates: tuple[str, ...]
    pattern: Pattern
    reason: str | None
    """The required reason of a missing score for one of the candidates."""
    tag: TagValue | None
    words: str
    is_regex: bool
    """Whether the words are a regular expression."""

    def fits(self) -> Callable[[str, JsonView], bool] | None:
        """A test of an example's key and fields for the tag and the regular expression; None without these.

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
                    f"to look for {self.words[:80]!r} takes more than {PATIENCE_S:g} s; search for words"
                ) from error

        return fits


def ask_for(campaign: CampaignRecord, ranked: Sequence[str]) -> Asked:
    """The candidates and conditions in the boxes above the table."""
    first = list(ranked[:SHOWN_FIRST])
    linked = st.query_params.get(CANDIDATE)
    if linked is not None and linked in ranked and linked not in first:
        first[-1:] = [linked]
    key, short = f"matrix-candidates-{campaign.id}", short_labels(ranked)
    chosen = st.multiselect(
        "Candidates",
        ranked,
        default=first,
        format_func=short.__getitem__,
        key=key,
        help=whole_names(st.session_state.get(key, first), short),
    )
    with asking() as session:
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
    return Asked(tuple(chosen), pattern, reason, tags.get(tag or ""), words, is_regex and bool(words))


def _choice(place: DeltaGenerator, label: str, options: Sequence[str]) -> str | None:
    """One of some options, or none; without options no box is shown."""
    if not options:
        return None
    return place.selectbox(label, options, index=None, placeholder=ANY, format_func=readable)


def _tags(campaign: CampaignRecord) -> list[TagValue]:
    """The tags of a campaign with all their values; cached for a reader's later looks."""
    if not (wanted := tags_of(campaign)):
        return []
    counts: TagCounts = st.session_state.setdefault(TAGS, TagCounts())
    with asking() as session:
        sizes, _ = counts.look(session, campaign, wanted, ())
    return sorted(sizes, key=lambda each: (wanted.index(each[0]), each[1]))
