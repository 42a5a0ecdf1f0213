"""One comparison with everything that led to its outcome: prompts, answers, and what its judges said."""

import json
from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import asking
from winnow.flows.reports.dashboard.widgets import show_heading, show_passage, show_soft
from winnow.flows.reports.html.sections.samples import place_of
from winnow.storage.json_types import Row
from winnow.storage.queries import browse as browse_views
from winnow.storage.records.values import CampaignRecord

MOST_CHARACTERS = 20_000
"""Of each text, unless the whole is asked for."""


def show_comparison(campaign: CampaignRecord, comparison_id: int, *, whole: bool) -> None:
    """Draw a comparison.

    Args:
        campaign: The campaign of the comparison.
        comparison_id: Id of the comparison.
        whole: Whether long texts are read to their ends.
    """
    characters = None if whole else MOST_CHARACTERS
    with asking() as session:
        row = browse_views.comparison(session, campaign.id, comparison_id, characters=characters)
        judgments = browse_views.judgments(session, comparison_id, characters=characters)
    if row is None:
        st.text("This comparison is no longer there.")
        return
    show_heading(heading(row), key="comparison")
    show_soft(" · ".join(facts(row)), key="comparison")
    _example(row)
    _answers(row)
    for name, label in (("answer", "read by the judge"), ("detail", "why there is no outcome")):
        if row[name] is not None:
            show_passage(label, row[name], row[f"{name}_length"], key=name)
    _judgments(row, judgments)


def listed(rows: Sequence[Row]) -> list[Row]:
    """Comparisons as tables list them: without their ids, rounds and positions counted from 1."""
    counted = ("round", "position")
    return [
        {name: value + 1 if name in counted else value for name, value in row.items() if name != "id"}
        for row in rows
    ]


def heading(row: Row) -> str:
    """The names of the compared candidates and of the example."""
    rival = f" against {row['candidate_b']}" if row["candidate_b"] else ""
    return f"{row['candidate']}{rival} on example {row['example']}"


def facts(row: Row) -> list[str]:
    """The comparison's outcome, the place where it was planned, its judge and its losses."""
    return [
        ending(row),
        place_of(row),
        f"judge {row['judge']}",
        *(
            f"{name.replace('_', ' ')} {row[name]:g}"
            for name in ("human_loss", "auto_loss", "unlabelled_loss", "unlabelled_missing")
            if row[name] is not None
        ),
    ]


def ending(row: Row) -> str:
    """The outcome in words."""
    outcome = row["outcome"]
    if outcome is None:
        return f"no outcome: {row['reason']}"
    if not row["candidate_b"]:
        return f"score {outcome:g}"
    if outcome == 0.5:
        return "a tie"
    share = max(outcome, 1.0 - outcome)
    preferred = row["candidate"] if outcome > 0.5 else row["candidate_b"]
    return f"{preferred} preferred" + ("" if share == 1.0 else f" by {share:g}")


def _example(row: Row) -> None:
    with st.expander("Example and target"):
        example = {"fields": row["fields"], "targets": row["targets"], "label": row["label"]}
        text = json.dumps(example, ensure_ascii=False, indent=2)
        show_passage("as stored", text, len(text), key="example")


PASSAGES = {"prompt": "prompt of", "reasoning": "reasoning of", "text": "answer of"}


def _answers(row: Row) -> None:
    ends = ("", "_b") if row["candidate_b"] else ("",)
    for end, column in zip(ends, st.columns(len(ends)), strict=True):
        with column:
            if row[f"text{end}"] is None:
                show_soft(f"{row[f'candidate{end}']}: no answer was made", key=f"none{end}")
                continue
            for name, label in PASSAGES.items():
                key = f"{name}{end}"
                if row[key] is None:  # most models tell no reasoning
                    continue
                show_passage(f"{label} {row[f'candidate{end}']}", row[key], row[f"{key}_length"], key=key)
            show_soft(_made(row, end), key=f"made{end}")


def _made(row: Row, end: str) -> str:
    return (
        f"{row[f'model{end}']} on {row[f'engine{end}']}, {row[f'input_tokens{end}']} tokens in, "
        f"{row[f'output_tokens{end}']} out, {row[f'seconds{end}']:.3g} s, "
        f"ended by {row[f'finish_reason{end}']}"
    )


def _judgments(row: Row, judgments: Sequence[Row]) -> None:
    if not judgments:
        return
    st.header("Judgments")
    swapped = " Swapped: the second candidate's answer was shown first." if row["candidate_b"] else ""
    st.caption(f"Each call of a model that judged.{swapped}")
    for column, judgment in zip(_columns(len(judgments)), judgments, strict=True):
        with column, st.container(border=True):
            show_soft(judgment_line(row, judgment), key=f"judgment-{judgment['number']}")
            for name, label in (("reply", "reply"), ("prompt", "prompt of the judge")):
                if judgment[name] is not None:
                    key = f"{name}-{judgment['number']}"
                    show_passage(label, judgment[name], judgment[f"{name}_length"], key=key)


def _columns(count: int) -> list[st.delta_generator.DeltaGenerator]:
    """Two judgments in a row: mostly the two orders of one question."""
    return [column for _ in range(0, count, 2) for column in st.columns(2)][:count]


def judgment_line(row: Row, judgment: Row) -> str:
    """A judge's call in one line: metric, judge, order of the answers, attempt and verdict."""
    again = f", attempt {judgment['attempt'] + 1}" if judgment["attempt"] else ""
    verdict = (
        f"no verdict: {judgment['reason']}"
        if judgment["verdict"] is None
        else ending({**row, "outcome": judgment["verdict"]})
    )
    order = f", {judgment['presentation_order']}" if row["candidate_b"] else ""
    metric = f"metric {judgment['metric']}, " if judgment["metric"] else ""
    return f"{metric}{judgment['judge']}{order}{again}: {verdict}"
