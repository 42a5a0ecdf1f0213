"""The evidence behind certificates: e-values against labels, and reliance on the autoevaluator."""

import math
from collections.abc import Collection, Sequence

from plotly.graph_objects import Figure, Heatmap, Scatter

from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened
from winnow.flows.reports.html.figures.theme import GREY, LINES, ORANGE, ROWS, WEIGHTS, dressed
from winnow.storage.json_types import Row

LARGEST_LOG = 690.0
"""Natural logarithm of the largest drawn e-value, about 10^300, and of the inverse of the smallest."""
LEAST_DECADE, MOST_DECADES = -3.0, 12.0
"""Limits of the view in powers of ten, the second above the line, so that extremes do not flatten the
rest."""
MOST_TICKS = 8
LONGEST_IN_LEGEND = 26
"""Maximum characters of a name in a legend on a phone, next to its outcome."""


def e_values(rows: Sequence[Row], *, certified: Collection[str], line_as: str) -> Figure:
    """E-values against labels on a logarithmic axis, and the line to reach.

    Args:
        rows: One per candidate and label, with `candidate`, `labels`, `log_e_value` and `needed`, candidates
            in testing order.
        certified: Names of those that passed; a star marks where.
        line_as: Label of the line.
    """
    figure = Figure()
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    for number, name in enumerate(names):
        own = [row for row in rows if row["candidate"] == name]
        colour = LINES[number] if number < len(LINES) else GREY
        passed = _first_passing(own) if name in certified else None
        path = _path(own, colour, "certified" if name in certified else "not certified")
        is_coloured = number < len(LINES)
        figure.add_trace(path.update(showlegend=is_coloured, zorder=int(is_coloured)))
        if passed is not None:
            figure.add_trace(_star(passed, colour).update(zorder=int(is_coloured)))
    needed = rows[0]["needed"]
    low, high = _decades(rows)
    figure.add_hline(needed, line={"color": ORANGE, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=0,  # where all begin, below the line
        xref="paper",
        xanchor="left",
        y=math.log10(needed),
        yanchor="bottom",
        text=line_as,
        showarrow=False,
        font={"color": ORANGE},
    )
    return dressed(
        figure,
        xaxis={"title": "human labels of the candidate's test", "rangemode": "tozero"},
        yaxis={
            "title": "e-value",
            "type": "log",
            "exponentformat": "power",
            # Values and no powers: what is below 0 is no end of a logarithmic axis, and would be passed over.
            "autorangeoptions": {"clipmin": 10.0**low, "clipmax": 10.0**high},
            "dtick": math.ceil((high - low) / MOST_TICKS),
        },
        showlegend=True,
    ).update_layout(height=460)


def weights(rows: Sequence[Row]) -> Figure:
    """Share of each candidate's bets at each factor rho, candidates in testing order.

    Args:
        rows: One per candidate and factor, with `candidate`, `rho` in [0, 1] and `weight`.
    """
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    factors = sorted({row["rho"] for row in rows})
    cells = {(row["candidate"], row["rho"]): row["weight"] for row in rows}
    figure = Figure(
        Heatmap(
            x=[f"{factor:.2f}" for factor in factors],
            y=[as_label(name) for name in names],
            z=[[cells.get((name, factor)) for factor in factors] for name in names],
            zmin=0.0,
            colorscale=WEIGHTS,
            xgap=2,
            ygap=2,
            colorbar={"title": "weight", "thickness": 12, "outlinewidth": 0},
            hovertemplate="%{y}<br>ρ = %{x}: weight %{z:.3f}<extra></extra>",
        )
    )
    return dressed(
        figure,
        rows=len(names),
        meta=ROWS,
        xaxis={
            "title": "ρ: 0 = human labels alone,<br>1 = full trust and correction",
            "type": "category",
            "showgrid": False,
        },
        yaxis=name_axis(names, downwards=True),
    )


def _path(rows: Sequence[Row], colour: str, ending: str) -> Scatter:
    name = rows[0]["candidate"]
    return Scatter(
        x=[row["labels"] for row in rows],
        y=[_drawn(row) for row in rows],
        customdata=[row["log_e_value"] / math.log(10) for row in rows],
        mode="lines" if len(rows) > 1 else "markers",
        line={"color": colour, "width": 2, "dash": "solid" if ending == "certified" else "dot"},
        marker={"color": colour},
        name=f"{shortened(name, LONGEST_IN_LEGEND)}: {ending}",
        hovertemplate=f"{_literal(as_label(name))}<br>10^%{{customdata:.2f}} after %{{x}} labels"
        "<extra></extra>",
    )


def _star(row: Row, colour: str) -> Scatter:
    return Scatter(
        x=[row["labels"]],
        y=[_drawn(row)],
        mode="markers",
        marker={"symbol": "star", "size": 14, "color": colour},
        showlegend=False,
        hovertemplate=f"{_literal(as_label(row['candidate']))}<br>certified at label %{{x}}<extra></extra>",
    )


def _first_passing(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row["log_e_value"] >= math.log(row["needed"])), None)


def _drawn(row: Row) -> float:
    return math.exp(max(-LARGEST_LOG, min(LARGEST_LOG, row["log_e_value"])))


def _decades(rows: Sequence[Row]) -> tuple[float, float]:
    """Limits of the view, in powers of ten."""
    logs = [row["log_e_value"] / math.log(10) for row in rows]
    line = math.log10(rows[0]["needed"])
    low = max(min(0.0, *logs), LEAST_DECADE)
    high = min(max(line, *logs), line + MOST_DECADES)
    return low - 0.2, high + 0.4


def _literal(text: str) -> str:
    """Escape text for a hover template, which would replace %{...} by a value."""
    return text.replace("%", "&#37;")
