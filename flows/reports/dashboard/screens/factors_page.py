"""The page Factors: effects of models, prompts and sampling settings on scores, and their interactions."""

from collections.abc import Sequence

import streamlit as st
from plotly.graph_objects import Figure

from winnow.flows.reports.dashboard.db import on_campaign, read_session
from winnow.flows.reports.dashboard.plots import show_figure
from winnow.flows.reports.dashboard.widgets import show_rows, show_soft
from winnow.flows.reports.html.figures.estimates import intervals, parallel
from winnow.flows.reports.html.model import MOST_CANDIDATES
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.factors import (
    LEAST_EXAMPLES,
    MOST_LEVELS,
    UNCERTIFIED,
    CellEffect,
    FactorTables,
    factor_tables,
)
from winnow.tasks.text.phrases import rounded

PATIENCE = 30.0
"""Seconds after which reading the scores is aborted."""


def show() -> None:
    """Show the page."""
    on_campaign("Factors", _show_campaign)


def _show_campaign(campaign: CampaignRecord, _: Sequence[CampaignRecord]) -> None:
    with read_session(PATIENCE) as session:
        is_duel = traits_of(campaign.objective).compares_pairs
        found = None if is_duel else factor_tables(Look(session, campaign))
    if (reason := why_nothing(campaign, found)) is not None:
        st.text(reason)
    elif found is not None:
        _show(found)


def why_nothing(campaign: CampaignRecord, found: FactorTables | None) -> str | None:
    """The reason why the page cannot show effects, with a remedy; None if it can."""
    if traits_of(campaign.objective).compares_pairs:
        return (
            "Duels do not score single candidates, so there are no effects. To compare two candidates, open "
            "Compare."
        )
    if found is None:
        return (
            f"This campaign has more than {MOST_LEVELS} models, prompts and sampling settings, too many for "
            "this page. Open Matrix or Compare instead."
        )
    if not found.factors:
        return (
            "All candidates have the same model, prompt and sampling settings. If a campaign has several "
            "prompts or generate_configs, this page shows the effect of each."
        )
    if not found.scores:
        return f"No scores yet; see winnow status {campaign.name}."
    return None


def _show(found: FactorTables) -> None:
    cut = " (the first ones; the campaign has more)" if found.is_cut else ""
    show_soft(f"{found.scores:,} scores on {found.examples:,} examples{cut}.", key="scores")
    st.caption(UNCERTIFIED)
    if found.examples < LEAST_EXAMPLES or lacks_intervals(found):
        st.caption(
            f"An effect has an interval if its level, or combination of levels, has {LEAST_EXAMPLES} or more "
            "examples that were also scored for others, and if the scores differ."
        )
    _show_candidates(found)
    for factor in found.factors:
        _show_factor(factor.name, found)
    for names, cells in found.cells.items():
        _show_pair(names, cells)


def lacks_intervals(found: FactorTables) -> bool:
    """Whether at least one effect has an estimate without an interval."""
    cells = [(cell.estimate, cell.lower) for pair in found.cells.values() for cell in pair]
    effects = [(effect.estimate, effect.lower) for effect in found.effects]
    return any(estimate is not None and lower is None for estimate, lower in [*effects, *cells])


def _show_candidates(found: FactorTables) -> None:
    st.header("Candidates")
    st.caption(
        "Each line is a candidate: its model, prompt and sampling settings, then its mean score. Drag along "
        "an axis to keep only the lines through that range; click elsewhere on the axis to reset."
    )
    show_figure(parallel(found.factors, found.candidates), key="parallel")
    names = [factor.name for factor in found.factors]
    rows = [
        {
            "candidate": each.name,
            **{
                name: factor.levels[level]
                for name, factor, level in zip(names, found.factors, each.levels, strict=True)
            },
            "scores": each.scores,
            "mean": each.mean,
        }
        for each in sorted(found.candidates, key=lambda each: -each.mean)
    ]
    with st.expander("Show as a table"):
        show_rows(rows, key="candidates")


def _show_factor(name: str, found: FactorTables) -> None:
    st.header(name.capitalize())
    effects = [effect for effect in found.effects if effect.factor == name]
    rows: list[Row] = [
        {
            "candidate": effect.level,
            "estimate": effect.estimate,
            "lower": effect.lower,
            "upper": effect.upper,
        }
        for effect in effects
    ]
    rows.sort(key=lambda row: (row["estimate"] is None, -(row["estimate"] or 0.0)))
    if any(row["estimate"] is not None for row in rows):
        show_figure(_effects(rows, f"against the average {name}", "average"), key=f"main-{name}")
    if open_ := [effect.level for effect in effects if effect.estimate is None]:
        show_soft(
            f"The scores cannot separate the effects of these from other factors: {', '.join(open_)}.",
            key=f"open-{name}",
        )


def _effects(rows: Sequence[Row], title: str, line_as: str) -> Figure:
    return intervals(rows[:MOST_CANDIDATES], title=title, line=0.0, line_as=line_as)


def _show_pair(names: tuple[str, str], cells: Sequence[CellEffect]) -> None:
    first, second = names
    st.header(f"{first.capitalize()} × {second}")
    st.caption(
        f"Mean scores, with their number in brackets. Empty: no score of this combination. Rows: {first}; "
        f"columns: {second}."
    )
    show_rows(mean_table(first, cells), key=f"means-{first}-{second}")
    known = [cell for cell in cells if cell.estimate is not None]
    if not known:
        st.text("Too few of these combinations were scored to estimate interactions.")
        return
    st.caption("Interactions: effect of a combination beyond the sum of the two separate effects.")
    known.sort(key=lambda cell: -abs(cell.estimate or 0.0))
    rows = [
        {
            "candidate": " × ".join(cell.levels),
            "estimate": cell.estimate,
            "lower": cell.lower,
            "upper": cell.upper,
        }
        for cell in known
    ]
    show_figure(_effects(rows, "interaction effect", "no interaction"), key=f"pair-{first}-{second}")


def mean_table(first: str, cells: Sequence[CellEffect]) -> list[Row]:
    """Table of mean scores: a row per level of the first factor, a column per level of the second."""
    rows: dict[str, Row] = {}
    for cell in cells:
        ours, theirs = cell.levels
        row = rows.setdefault(ours, {first: ours})
        row[theirs if theirs != first else f"{theirs} "] = (
            "" if cell.mean is None else f"{rounded(cell.mean)} ({cell.scores:,})"
        )
    return list(rows.values())
