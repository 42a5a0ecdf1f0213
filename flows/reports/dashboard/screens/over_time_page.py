"""The page Over time: winners, estimates and costs of campaigns on the same question."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import read_session, show_errors
from winnow.flows.reports.dashboard.plots import show_figure
from winnow.flows.reports.dashboard.widgets import show_rows, show_soft
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.html.figures.over_time import costs_over_time, estimates_over_time
from winnow.storage.json_types import Row
from winnow.tasks.queries.schedule_history import (
    MOST_CAMPAIGNS,
    Series,
    all_series,
    other_numbers,
    over_time,
    tracks,
)
from winnow.tasks.spec.stored_spec import estimated_value, grouping_of
from winnow.tasks.text.phrases import amount

PATIENCE = 60.0
"""Seconds after which reading the campaigns is aborted."""
MOST_TRACKS = 5
"""Maximum number of candidates in the figure; they are those that led most often."""
ADDRESS = "series"
"""Parameter of the page's address: title of the selected series."""

DIFFERENT = "These campaigns differ in: {}. A change of a line can be due to this."
"""Sentence shown if the campaigns' definitions differ."""

DRIFT = (
    "Estimates of the candidates that led most often, with each campaign's interval; a diamond marks the "
    "leader. Each interval holds for its own campaign: two intervals that do not overlap do not prove drift."
)
UNRELATED = (
    "Estimates of the candidates that led most often, with each campaign's interval; a diamond marks the "
    "leader. These campaigns share data and objective but do not repeat one another, so no line joins them."
)
NOTHING_YET = (
    "No campaign was repeated yet. The command below repeats a campaign every night and reuses stored "
    "outputs; this page then shows whether the winner changes:"
)


def show() -> None:
    """Show the page."""
    st.title("Over time")
    with show_errors():
        with read_session() as session:
            found = all_series(session)
        if not found:
            st.text(NOTHING_YET)
            st.code('winnow schedule campaign.yaml --cron "0 2 * * *"', language=None, wrap_lines=True)
            return
        _show(_chosen(found))


def _chosen(found: Sequence[Series]) -> Series:
    titles = [series.title for series in found]
    wanted = st.query_params.get(ADDRESS)
    first = titles.index(wanted) if wanted in titles else 0
    number: int = st.selectbox(
        "Campaigns", range(len(found)), index=first, format_func=lambda each: readable(titles[each])
    )
    st.query_params[ADDRESS] = titles[number]
    return found[number]


def _show(series: Series) -> None:
    with read_session(PATIENCE) as session:
        rows = over_time(session, series)
        led = Counter(row["best"] for row in rows if row["best"] is not None)
        names = [name for name, _ in led.most_common(MOST_TRACKS)]
        lines = tracks(session, series, names)
    show_soft(summary(rows, len(series.campaigns)), key="series")
    st.header("Winners and drift" if series.are_repeated else "Winners")
    if names:
        last = series.campaigns[-1]
        what = estimated_value(last.objective, grouping_of(last.spec))
        show_soft(DRIFT if series.are_repeated else UNRELATED, key="drift")
        if differing := other_numbers(series.campaigns[-MOST_CAMPAIGNS:]):
            show_soft(DIFFERENT.format(", ".join(differing)), key="different")
        figure = estimates_over_time(lines, rows, title=what, are_repeated=series.are_repeated)
        show_figure(figure, key="drift")
    else:
        st.text("None of these campaigns has a leader yet; run winnow status.")
    nothing = {name for name in ("reused", "load_seconds") if not any(row[name] for row in rows)}
    shown = [{key: cell for key, cell in _row(row).items() if key not in nothing} for row in reversed(rows)]
    show_rows(shown, key="over-time")
    st.header("Cost")
    show_figure(costs_over_time(rows), key="cost")


def summary(rows: Sequence[Row], campaigns: int) -> str:
    """A sentence on the number of winner changes and the total cost of the shown campaigns."""
    changes = sum(bool(row["changed"]) for row in rows)
    cut = (
        f"the last {MOST_CAMPAIGNS} of {campaigns} campaigns"
        if campaigns > len(rows)
        else f"{campaigns} campaign{'' if campaigns == 1 else 's'}"
    )
    generated, reused, tokens = (
        amount(sum(row[key] for row in rows)) for key in ("generated", "reused", "tokens")
    )
    seconds = sum(row["engine_seconds"] + row["load_seconds"] for row in rows)
    return (
        f"{cut}: the winner changed {changes} time{'' if changes == 1 else 's'}; {generated} new outputs and "
        f"{reused} reused, {tokens} tokens, {seconds:,.1f} s of engine time"
    )


def _row(row: Row) -> Row:
    """Move the columns that a narrow page must show to the front of a row."""
    first = {
        "campaign": row["campaign"],
        "best": row["best"],
        "changed": row["changed"],
        "estimate": row["estimate"],
        "lower": row["lower"],
        "upper": row["upper"],
        "state": row["state"],
        "begun (UTC)": f"{row['created_at']:%Y-%m-%d %H:%M}",
    }
    return {**first, **{key: row[key] for key in row if key != "created_at"}}
