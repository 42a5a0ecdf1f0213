"""The page Compare: two candidates, of one campaign or of two, and their differences by tag and example."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard.db import on_campaign, read_session
from winnow.flows.reports.dashboard.opened_row import open_row
from winnow.flows.reports.dashboard.plots import show_figure
from winnow.flows.reports.dashboard.screens.comparison_view import (
    PREVIEW,
    example_cells,
    show_comparison,
    show_pair,
)
from winnow.flows.reports.dashboard.widgets import (
    SHARE,
    choose_name,
    set_address,
    show_rows,
    show_soft,
)
from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import browse
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.comparing import (
    CUT,
    UNCERTIFIED,
    PairedDifference,
    PairedExample,
    Side,
    are_cut,
    by_field,
    difference_of,
    grouping_fields,
    paired_examples,
)
from winnow.tasks.queries.schedule_history import other_numbers
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.spec.judge_tree import spares
from winnow.tasks.text.phrases import amount, ends, rounded

PATIENCE = 30.0
"""Seconds after which reading the scores of two candidates is aborted."""
MOST_EXAMPLES = 500
"""Maximum number of rows in the table; those with the largest differences are shown."""
TABLE_HEIGHT = 320
"""Height in pixels."""
LONGEST_IN_BOX = 24
"""Maximum width of a name in a box of a third of the page, in terminal columns."""
FIRST, SECOND, OTHER = "first", "second", "with"
"""Parameters of the page's address: the two candidates, and the campaign of the second one."""
DIFFERENCE = "difference of estimates"
"""Column with the second campaign's estimate of a candidate minus the first one's."""
FIELD, EXAMPLE, WHOLE = "by", "example", "whole"
"""Parameters of the address: field for grouping, open example, and whether its texts are shown in full."""
WITHOUT_EQUAL = (
    " Examples on which outputs were equal have no verdicts and are left out, so this is not the difference "
    "on all examples."
)


def show() -> None:
    """Show the page."""
    on_campaign("Compare", _show_chosen)


def _show_chosen(campaign: CampaignRecord, records: Sequence[CampaignRecord]) -> None:
    if sides := _choose(campaign.name, [each.name for each in records]):
        _show(*sides)


def _choose(name: str, names: Sequence[str]) -> tuple[Side, Side] | None:
    """Show the boxes, and return the two candidates to compare, by default the campaign's two best.

    None if both candidates are to be from one campaign that has only one candidate.
    """
    left, right, beside = st.columns(3)
    newest_first = list(reversed(names))
    wanted = st.query_params.get(OTHER)
    other = choose_name(
        beside,
        "Campaign of the second",
        newest_first,
        index=newest_first.index(wanted if wanted in newest_first else name),
        key=f"compare-with-{name}",
        most=LONGEST_IN_BOX,
    )
    assert other is not None, "a box with an index holds a name"
    with read_session() as session:
        ours, theirs = (campaign_records.get_campaign(session, each) for each in (name, other))
        mine, yours = (_ranked(Look(session, each)) for each in (ours, theirs))
    if other == name and len(mine) < 2:
        st.text("This campaign has only one candidate. Choose another campaign to compare it with.")
        return None
    first = _candidate(left, FIRST, "First candidate", mine, mine[0], key=name)
    best = next((each for each in yours if other != name or each != first), yours[0])
    second = _candidate(right, SECOND, "Second candidate", yours, best, key=f"{name}-{other}")
    st.query_params[OTHER] = other
    return Side(ours, first), Side(theirs, second)


def _ranked(look: Look) -> list[str]:
    return [row["candidate"] for row in ask(look, "leaderboard")]


def _candidate(
    column: DeltaGenerator, place: str, label: str, names: Sequence[str], default: str, *, key: str
) -> str:
    wanted = st.query_params.get(place)
    chosen = choose_name(
        column,
        label,
        names,
        index=names.index(wanted if wanted in names else default),
        key=f"compare-{place}-{key}",
        most=LONGEST_IN_BOX,
    )
    assert chosen is not None, "a box with an index holds a name"
    st.query_params[place] = chosen
    return chosen


def _show(first: Side, second: Side) -> None:
    if first == second:
        st.text("Both candidates are the same. Choose another candidate or another campaign.")
        return
    if first.campaign.id != second.campaign.id:
        _show_campaigns(first.campaign, second.campaign)
    with read_session(PATIENCE) as session:
        examples = paired_examples(session, first, second)
        is_cut = are_cut(session, first, second)
    st.header("Difference")
    found = difference_of(examples)
    if found is None:
        st.text(why_nothing(first, second))
        return
    st.text(readable(sentence(first, second, found)))
    has_spared = any(spares(each.campaign.spec) for each in (first, second))
    st.caption(UNCERTIFIED + CUT * is_cut + WITHOUT_EQUAL * has_spared)
    _show_fields(examples)
    _show_examples(first, second, examples)


def why_nothing(first: Side, second: Side) -> str:
    """The reason why no example has scores of both candidates, with a remedy if one exists."""
    same = first.campaign.id == second.campaign.id
    if any(traits_of(each.campaign.objective).compares_pairs for each in (first, second)):
        none = "These candidates have no duel with an outcome"
        return f"{none}. Choose two others." if same else "Duels of two campaigns cannot be compared."
    if same and traits_of(first.campaign.objective).is_stream:
        return "No prompt has scores of both candidates, because each prompt is routed to one candidate."
    if same:
        return "No example has scores of both candidates."
    return (
        "No example has scores of both candidates. Examples of two campaigns are the same if their key, "
        "fields and targets are equal. Choose a campaign on the same data."
    )


def sentence(first: Side, second: Side, found: PairedDifference) -> str:
    """A sentence with the mean difference, its interval, and on how many examples each scores higher."""
    even = found.n - found.first_higher - found.second_higher
    names = [_side_name(side, first.campaign.id != second.campaign.id) for side in (first, second)]
    mean, (lower, upper) = rounded(found.mean, "+"), ends(found.lower, found.upper, "+")
    return (
        f"On {found.n:,} examples, {names[0]} minus {names[1]}: {mean}, between {lower} and {upper}; "
        f"higher on {found.first_higher:,}, lower on {found.second_higher:,}, equal on {even:,}."
    )


def _side_name(side: Side, with_campaign: bool) -> str:
    return f"{side.candidate} of {side.campaign.name}" if with_campaign else side.candidate


def _show_fields(examples: Sequence[PairedExample]) -> None:
    fields = grouping_fields(examples)
    if not fields:
        return
    st.header("By tag")
    wanted = st.query_params.get(FIELD)
    field: str = st.selectbox(
        "Field of the examples",
        fields,
        index=fields.index(wanted) if wanted in fields else 0,
        format_func=readable,
        key="compare-field",
    )
    set_address(**{FIELD: field})
    groups = by_field(examples, field)
    rows = [
        {
            "candidate": f"{value} ({each.n:,})",
            "estimate": each.mean,
            "lower": each.lower,
            "upper": each.upper,
        }
        for value, each in groups.items()
    ]
    show_figure(
        intervals(rows, title="difference, first minus second", line=0.0, line_as="no difference"),
        key="by-field",
    )


def _show_examples(first: Side, second: Side, examples: Sequence[PairedExample]) -> None:
    st.header("Examples")
    ordered = sorted(examples, key=lambda each: -abs(each.difference))[:MOST_EXAMPLES]
    cut = f", {MOST_EXAMPLES} of {len(examples):,}" if len(examples) > MOST_EXAMPLES else ""
    st.caption(f"Largest differences first{cut}. Click an example to read both outputs.")
    with read_session(PATIENCE) as session:
        texts = browse.beginnings(
            session,
            [id_ for each in ordered for id_ in (each.first_comparison, each.second_comparison)],
            characters=PREVIEW,
        )
    place = open_row(
        [_row(each, first.candidate, texts) for each in ordered],
        [each.key for each in ordered],
        key=f"compared-{first.campaign.id}-{second.campaign.id}",
        address=EXAMPLE,
        height=TABLE_HEIGHT,
        where=f"{len(ordered):,} examples",
    )
    picked = ordered[place]
    whole = st.toggle("Whole texts", value=st.query_params.get(WHOLE) == "yes", key="compare-whole")
    set_address(**{WHOLE: "yes" if whole else None})
    if picked.second_comparison == picked.first_comparison:  # a duel has both outputs
        show_comparison(first.campaign, picked.first_comparison, whole=whole)
        return
    show_pair(
        [(first.campaign, picked.first_comparison), (second.campaign, picked.second_comparison)],
        whole=whole,
    )


def _row(example: PairedExample, first: str, texts: Mapping[int, Row]) -> Row:
    ours, theirs = texts[example.first_comparison], texts[example.second_comparison]
    outputs = (ours["text"], theirs["text"])
    if ours is theirs:  # a duel, in which either candidate can be the first
        outputs = (ours["text"], ours["text_b"])
        outputs = outputs if ours["candidate"] == first else outputs[::-1]
    return {
        **example_cells(ours),
        "first output": outputs[0],
        "second output": outputs[1],
        "first": example.first,
        "second": example.second,
        "difference": example.difference,
    }


def _show_campaigns(ours: CampaignRecord, theirs: CampaignRecord) -> None:
    with read_session(PATIENCE) as session:
        statuses = [campaign_status(Look(session, each)) for each in (ours, theirs)]
        boards = [
            {row["candidate"]: row for row in ask(Look(session, each), "leaderboard")}
            for each in (ours, theirs)
        ]
    st.header("Campaigns")
    show_rows(
        [campaign_row(record, each) for record, each in zip((ours, theirs), statuses, strict=True)], key="two"
    )
    if differing := other_numbers([ours, theirs]):
        show_soft(
            f"The campaigns differ in {', '.join(differing)}, so their estimates measure different things "
            "and are not shown side by side. A difference between scores can be due to this.",
            key="different",
        )
    elif rows := estimate_rows(*boards):
        other_data = "" if ours.dataset_id == theirs.dataset_id else " The datasets are not the same."
        show_soft(
            "Candidates of the same name in both campaigns. The difference of estimates is the second "
            "campaign's estimate minus the first one's. It is not tested, and each estimate is from the "
            f"examples that its own campaign evaluated.{other_data}",
            key="estimates",
        )
        show_rows(rows, key="estimates-rows")


def campaign_row(record: CampaignRecord, status: CampaignStatus) -> Row:
    """A row with a campaign's state, answer and costs."""
    best, totals = status.answer.of_best, status.totals
    return {
        "campaign": status.name,
        "state": headline(status.answer, status.state),
        "best": best and best.name,
        "estimate": best and best.estimate,
        "lower": best and best.lower,
        "upper": best and best.upper,
        "comparisons": totals["answered"],
        SHARE: 100.0 * status.share_of_grid,
        "generations": totals["generations"],
        "tokens": amount(totals["input_tokens"] + totals["output_tokens"]),
        "engine seconds": totals["engine_seconds"],
        "selector": record.spec["selector"]["name"],
        "begun (UTC)": f"{record.created_at:%Y-%m-%d %H:%M}",
    }


def estimate_rows(ours: dict[str, Row], theirs: dict[str, Row]) -> list[Row]:
    """One row per candidate of both leaderboards, with both estimates, in the order of the second one."""
    shared = [name for name in theirs if name in ours]
    rows = []
    for name in shared:
        before, now = ours[name]["estimate"], theirs[name]["estimate"]
        difference = None if before is None or now is None else now - before
        rows.append({"candidate": name, "first": before, "second": now, DIFFERENCE: difference})
    return rows
