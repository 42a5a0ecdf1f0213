"""The filters of the matrix: its candidates, and conditions on its examples."""

import json
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard.db import asking
from winnow.flows.reports.dashboard.widgets import short_labels, whole_names
from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.json_types import JsonView
from winnow.storage.queries import browse
from winnow.storage.queries.matrix import Pattern
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.data.tag_counts import TagCounts, TagValue, values_of
from winnow.tasks.errors import WinnowError
from winnow.tasks.queries.breakdowns import tags_of
from winnow.tasks.text.patterns import compiled

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
