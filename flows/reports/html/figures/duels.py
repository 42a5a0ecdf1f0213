"""The figure of head-to-head win rates."""

from collections.abc import Sequence

from plotly.graph_objects import Figure, Heatmap

from winnow.flows.reports.html.figures.labels import as_label, name_axis
from winnow.flows.reports.html.figures.theme import SQUARE, WINS, dressed
from winnow.storage.json_types import Row
from winnow.tasks.text.phrases import rounded

MOST_WRITTEN = 12
"""Maximum number of candidates for which each cell shows its numbers."""


def head_to_head(rows: Sequence[Row], names: Sequence[str]) -> Figure:
    """Win rate of the row over the column and the number of scored duels; empty without duels.

    Args:
        rows: One per ordered pair with duels, with `candidate`, `opponent`, `win_rate`, `wins`, `ties` and
            `losses`.
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
            text=[[_written(cell) for cell in cells] for cells in table],
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
    dressed(
        figure,
        rows=2 * len(names) if len(names) <= MOST_WRITTEN else len(names),
        xaxis=name_axis(names) | {"title": "opponent"},
        yaxis=name_axis(names, downwards=True),
        meta=SQUARE,
    )
    return figure.update_xaxes(tickangle=-35)


def _written(cell: Row | None) -> str:
    return "" if cell is None else f"{rounded(cell['win_rate'])}<br>n = {_scored(cell)}"


def _record(cell: Row | None) -> str:
    if cell is None:
        return ""
    rate, games = rounded(cell["win_rate"]), _scored(cell)
    return f"win rate {rate}: {cell['wins']} won, {cell['ties']} tied, {cell['losses']} lost of {games}"


def _scored(cell: Row) -> int:
    scored: int = cell["wins"] + cell["ties"] + cell["losses"]
    return scored
