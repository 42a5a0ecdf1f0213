"""The filters of the browser of comparisons: boxes on the page in, conditions for the database out."""

import streamlit as st

from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.queries.browse import Choices, Filters

ANYTHING, SCORED, UNSCORED = "any", "has an outcome", "has none"
BECAUSE = "none: "
"""Before a reason."""


def ask_filters(choices: Choices, *, lowest: float) -> Filters:
    """What the reader asked for, in boxes above the table.

    Args:
        choices: What the campaign's comparisons can be filtered by.
        lowest: The smallest outcome that there can be; 1 is the largest.
    """
    words_box, candidate_box, judge_box, ending_box, range_box = st.columns([3, 3, 2, 2, 2])
    words = words_box.text_input("Search", placeholder="in prompts, answers and keys of examples")
    candidate = candidate_box.selectbox(
        "Candidate", choices.candidates, index=None, placeholder=ANYTHING, format_func=readable
    )
    judge = judge_box.selectbox(
        "Judge", choices.judges, index=None, placeholder=ANYTHING, format_func=readable
    )
    endings = [SCORED, UNSCORED, *(BECAUSE + reason for reason in choices.reasons)]
    ending = ending_box.selectbox("Outcome", endings, index=None, placeholder=ANYTHING, format_func=readable)
    between = range_box.slider("Outcome between", lowest, 1.0, (lowest, 1.0), 0.05)
    return filters_of(words, candidate, judge, ending, None if between == (lowest, 1.0) else between)


def filters_of(
    words: str | None,
    candidate: str | None,
    judge: str | None,
    ending: str | None,
    between: tuple[float, float] | None,
) -> Filters:
    """What the boxes mean; None is a box that was left as it is."""
    low, high = between or (None, None)
    return Filters(
        words=(words or "").strip(),
        candidate=candidate,
        judge=judge,
        lowest=low,
        highest=high,
        is_scored=None if ending is None else ending == SCORED,
        reason=ending.removeprefix(BECAUSE) if ending and ending.startswith(BECAUSE) else None,
    )
