"""Sections of a best-duel campaign's page, and the figure of win rates."""

from collections.abc import Sequence

from plotly.graph_objects import Figure, Heatmap

from winnow.flows.reports.html.figures.estimates import intervals
from winnow.flows.reports.html.figures.labels import as_label, name_axis
from winnow.flows.reports.html.figures.theme import SQUARE, WINS, styled
from winnow.flows.reports.html.model import Section, first_of
from winnow.flows.reports.html.sections import standard
from winnow.flows.reports.html.sections.standard import Builder, PageCache
from winnow.storage.json_types import Row
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.views import ask
from winnow.tasks.text.phrases import rounded

SAMPLES = {"good": "Won", "bad": "Lost", "even": "Tied"}
"""Headings of the sample comparisons, by kind."""


def builders_of(campaign: CampaignRecord, read: PageCache) -> tuple[Builder, ...]:
    """Builders of the sections between the answer and the sections of every page."""
    return (
        standard.estimates("Estimates", "win rate against its strongest opponent"),
        head_to_head,
        strengths,
        judges,
        standard.curve("win rate", "duels", read.points),
        standard.allocation("duels"),
    )


def head_to_head(look: Look) -> Section | None:
    """The section "head-to-head": win rates of all compared pairs of candidates."""
    met = [row for row in ask(look, "head-to-head") if row["win_rate"] is not None]
    if not met:
        return None
    board, cut = first_of(list(ask(look, "leaderboard")), look.record.name, "head-to-head")
    return Section(
        name="head-to-head",
        title="Head to head",
        note=(
            "Share of duels in which the row's candidate was preferred to the column's; a tie is half a win. "
            f"Best first.{cut}"
        ),
        figure=head_to_head_figure(met, [row["candidate"] for row in board]),
    )


def strengths(look: Look) -> Section | None:
    """The section "strengths": Bradley-Terry strengths with intervals."""
    known = [row for row in ask(look, "strengths") if row["strength"] is not None]
    if not known:
        return None
    rows, cut = first_of(known, look.record.name, "strengths")
    return Section(
        name="strengths",
        title="Strengths",
        note=(
            "Bradley-Terry strengths with 95% intervals, which are valid for a single look at the results. "
            f"They are not used for decisions.{cut}"
        ),
        figure=intervals(
            rows,
            title="log-odds of beating the average candidate",
            value="strength",
            line=0.0,
            line_as="average",
        ),
    )


def judges(look: Look) -> Section | None:
    """The section "judges": how the order of the answers affects judge models."""
    rows = list(ask(look, "judges"))
    if not rows:
        return None
    return Section(
        name="judges",
        title="Judges",
        note="First wins: mean preference for the answer shown first, 0.5 without position bias. Flip "
        "rate: share of the pairs judged in both orders whose two verdicts differ: different answers "
        "are preferred, or one verdict is a tie.",
        table=rows,
    )


MOST_WRITTEN = 12
"""Maximum number of candidates for which the figure's cells show numbers."""


def head_to_head_figure(rows: Sequence[Row], names: Sequence[str]) -> Figure:
    """Heat map: win rate of each row over each column, and the number of scored duels.

    Cells of pairs without duels are empty.

    Args:
        rows: One row per ordered pair with duels, with `candidate`, `opponent`, `win_rate`, `wins`, `ties`
            and `losses`.
        names: Candidates in the order of both axes.
    """
    met = {(row["candidate"], row["opponent"]): row for row in rows if row["win_rate"] is not None}
    table = [[met.get((name, other)) for other in names] for name in names]
    figure = Figure(
        Heatmap(
            x=[as_label(name) for name in names],
            y=[as_label(name) for name in names],
            z=[[cell and cell["win_rate"] for cell in cells] for cells in table],
            customdata=[[_record(cell) for cell in cells] for cells in table],
            text=[[_cell_text(cell) for cell in cells] for cells in table],
            texttemplate="%{text}" if len(names) <= MOST_WRITTEN else None,
            zmin=0.0,
            zmax=1.0,
            colorscale=WINS,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            colorbar={"title": "win rate", "thickness": 12, "outlinewidth": 0, "tickformat": ".0%"},
            hovertemplate="%{y}<br>against %{x}<br>%{customdata}<extra></extra>",
        )
    )
    styled(
        figure,
        rows=2 * len(names) if len(names) <= MOST_WRITTEN else len(names),
        xaxis=name_axis(names) | {"title": "opponent"},
        yaxis=name_axis(names, downwards=True),
        meta=SQUARE,
    )
    return figure.update_xaxes(tickangle=-35)


def _cell_text(cell: Row | None) -> str:
    return "" if cell is None else f"{rounded(cell['win_rate'])}<br>n = {_scored(cell)}"


def _record(cell: Row | None) -> str:
    if cell is None:
        return ""
    rate, duels = rounded(cell["win_rate"]), _scored(cell)
    return f"win rate {rate}: {cell['wins']} won, {cell['ties']} tied, {cell['losses']} lost of {duels}"


def _scored(cell: Row) -> int:
    scored: int = cell["wins"] + cell["ties"] + cell["losses"]
    return scored
