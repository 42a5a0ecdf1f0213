"""The page Judges: flipped verdicts, agreement between judges, and unreadable verdicts."""

from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import on_campaign, read_session
from winnow.flows.reports.dashboard.opened_row import open_row
from winnow.flows.reports.dashboard.screens.comparison_view import PREVIEW, listed, show_comparison
from winnow.flows.reports.dashboard.widgets import (
    choose_name,
    show_rows,
    show_soft,
)
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import browse
from winnow.storage.queries.browse import Doubt, Filters
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.best_duel.views import campaigns_agreement
from winnow.tasks.queries.views import answered_by, ask
from winnow.tasks.spec.judge_tree import is_human

PATIENCE = 30.0
"""Seconds after which reading a table is aborted."""
SHOWN = 50
"""Maximum number of listed comparisons."""
TABLE_HEIGHT = 320
"""Maximum height of the table of comparisons, in pixels."""

SECTIONS = {
    "judges": (
        "Both orders",
        "First wins: mean preference for the answer shown first, 0.5 without position bias. Flip rate: "
        "share of the pairs judged in both orders whose two verdicts differ: different answers are "
        "preferred, or one verdict is a tie.",
    ),
    "agreement": (
        "Agreement",
        "Cohen's kappa: 1 is full agreement, 0 is agreement by chance. For certify, agreement is how often "
        "the autoevaluator's answer has the same loss as the human label.",
    ),
    "unread": (
        "Verdicts that could not be read",
        "By judge and reason, counted per call. A comparison without a verdict has no outcome; guarantees "
        "assume the worst possible score for it.",
    ),
    "annotators": (
        "Annotators",
        "Each output is judged by one annotator, so agreement between annotators is unknown. If their means "
        "differ much, check which outputs each annotator received.",
    ),
}
"""View -> heading and explanation of its table."""

DOUBTS: dict[Doubt, str] = {
    "flipped": "the verdicts of the two orders differ",
    "unread": "a verdict could not be read",
    "judged": "all judgments of models",
}


def show() -> None:
    """Show the page."""
    on_campaign("Judges", _show)


def _show(campaign: CampaignRecord, records: Sequence[CampaignRecord]) -> None:
    tables = {view: _rows(campaign, view) for view in SECTIONS if view in answered_by(campaign.objective)}
    with read_session(PATIENCE) as session:
        judged = browse.comparisons(
            session, campaign.id, Filters(doubt="judged"), before=None, most=1, characters=1
        )
    if not judged and not any(tables.values()):
        st.text(why_nothing(campaign))
    for view, rows in tables.items():
        if rows:
            title, note = SECTIONS[view]
            st.header(title)
            show_soft(note, key=view)
            show_rows(rows, key=view)
    if judged and not tables["unread"]:
        show_soft("Every verdict of a model was readable.", key="all-read")
    _show_other(campaign, [each for each in records if each.dataset_id == campaign.dataset_id])
    if judged:
        _show_judged(campaign, [row["judge"] for row in tables.get("judges", [])])


def _rows(campaign: CampaignRecord, view: str) -> list[Row]:
    with read_session(PATIENCE) as session:
        return list(ask(Look(session, campaign), view))


def why_nothing(campaign: CampaignRecord) -> str:
    """The reason why there are no judgments to show, with a remedy."""
    if is_human(campaign.spec):
        return f"No judgments yet: run winnow label {campaign.name}."
    return (
        "No judgments by models or people: rules score these outputs, or no round is finished yet. To "
        "score the same outputs with another judge, run winnow rescore, or winnow run SPEC --fork "
        "NEW_NAME with a human judge."
    )


def _show_other(campaign: CampaignRecord, records: Sequence[CampaignRecord]) -> None:
    """Show the agreement of this campaign's judge with another campaign's judge on the same outputs."""
    others = [each.name for each in reversed(records) if each.id != campaign.id]
    if not others:
        return
    st.header("Another judge on the same outputs")
    show_soft(
        "To compare a judge model with people, fork its campaign with judge: {type: human}: the fork "
        "reuses the outputs, and this table shows how often the two agree.",
        key="other",
    )
    name = choose_name(
        st.container(), "Campaign", others, key=f"judges-other-{campaign.id}", index=None, placeholder="none"
    )
    if name is None:
        return
    with read_session(PATIENCE) as session:
        found = campaigns_agreement(
            Look(session, campaign), next(each for each in records if each.name == name)
        )
    if found is None:
        st.text(
            "No output has an outcome in both campaigns. Choose a fork of this campaign, or a campaign that "
            "rescores it."
        )
        return
    show_rows([found], key="same-texts")


def _show_judged(campaign: CampaignRecord, judges: Sequence[str]) -> None:
    """Show comparisons judged by models, with filters for suspicious ones and for a judge."""
    st.header("Judged by models")
    are_duels = traits_of(campaign.objective).compares_pairs
    kinds = [each for each in DOUBTS if are_duels or each != "flipped"]
    kind_box, judge_box = st.columns(2)
    doubt = kind_box.selectbox("Which", kinds, format_func=lambda each: DOUBTS[each], key="judges-doubt")
    judge = None
    if len(judges) > 1:
        key = f"judges-judge-{campaign.id}"
        judge = choose_name(judge_box, "Judge", judges, key=key, index=None, placeholder="any")
    with read_session(PATIENCE) as session:
        rows = browse.comparisons(
            session,
            campaign.id,
            Filters(doubt=doubt, judge=judge),
            before=None,
            most=SHOWN,
            characters=PREVIEW,
        )
    if not rows:
        st.text("No comparison matches; change the filters above.")
        return
    st.caption(
        f"Newest first, at most {SHOWN}; the page Comparisons shows all. Click a comparison to read it."
    )
    opened = open_row(
        listed(rows),
        [f"{row['round'] + 1}.{row['position'] + 1}" for row in rows],
        key=f"judged-{campaign.id}-{doubt}-{judge}",
        address="judged",
        height=TABLE_HEIGHT,
    )
    show_comparison(campaign, rows[opened]["id"], whole=st.toggle("Whole texts"))
