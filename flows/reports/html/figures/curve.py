"""Figures of spending: the leader against spending, and comparisons, tokens and time by candidate."""

from collections.abc import Sequence
from math import ceil

from plotly.graph_objects import Bar, Figure, Scatter

from winnow.flows.reports.html.figures.labels import as_label, name_axis, shortened
from winnow.flows.reports.html.figures.theme import BLUE, GREEN, GREY, ORANGE, ROWS, WIDE, reaching, styled
from winnow.storage.json_types import Row

MARGIN = 0.06
"""Margin above and below, as a share of the vertical range."""
LEAST_SPAN = 0.02
"""Smallest vertical range, such as for a single value."""
NAME_WIDTH = 8 / 850
"""Width of one letter, as a share of the figure's width."""


def curve(
    rows: Sequence[Row], *, title: str, unit: str, candidates: int = 0, out_at: Sequence[int] = ()
) -> Figure:
    """The leader's estimate and interval over time; dots and names mark changes of the leader.

    Args:
        rows: One row per finished round, with `comparisons`, `best`, `estimate`, `lower` and `upper`. Rounds
            without a leader leave a gap.
        title: Title of the vertical axis.
        unit: Title of the horizontal axis: the word for comparisons.
        candidates: Number of candidates.
        out_at: For each eliminated candidate, the number of comparisons at its elimination. If it is not
            empty, a line on a separate axis shows how many candidates are left.
    """
    figure = Figure([_edge(rows, "upper", None), _edge(rows, "lower", "tonexty"), _line(rows)])
    if changes := leads(rows):
        figure.add_trace(_new_leaders(changes))
        _name_above(figure, changes, end=rows[-1]["comparisons"])
    if rows[-1]["estimate"] is not None:
        figure.add_trace(_last(rows[-1]))
    styled(
        figure,
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis={"title": title, "zeroline": False, **reaching(zoomed(rows))},
        showlegend=True,
    )
    if out_at:
        _add_left(figure, sorted(out_at), candidates=candidates, end=rows[-1]["comparisons"])
    return figure.update_layout(legend={"y": -0.2, "yanchor": "top"})


def zoomed(rows: Sequence[Row]) -> list[float] | None:
    """Vertical range of the curve: all estimates, and the intervals of the second half of the comparisons.

    Early intervals span the full range, and would compress the rest to a thin band. None if no number is
    known.
    """
    half = rows[-1]["comparisons"] / 2.0
    late = [row for row in rows if row["comparisons"] >= half]
    ends = [row[key] for row in late for key in ("lower", "upper")]
    known = [each for each in [*(row["estimate"] for row in rows), *ends] if each is not None]
    if not known:
        return None
    margin = MARGIN * max(max(known) - min(known), LEAST_SPAN)
    return [min(known) - margin, max(known) + margin]


def leads(rows: Sequence[Row]) -> list[Row]:
    """The rows of rounds in which the leader changed, including the first leader."""
    leaders = [None, *(row["best"] for row in rows)]
    return [
        row
        for row, before in zip(rows, leaders[:-1], strict=True)
        if row["best"] is not None and row["best"] != before
    ]


def _edge(rows: Sequence[Row], end: str, fill: str | None) -> Scatter:
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row[end] for row in rows],
        mode="lines",
        line={"width": 0, "shape": "hv", "color": BLUE},
        fill=fill,
        fillcolor="rgba(0, 114, 178, 0.18)",
        name="interval",
        showlegend=fill is not None,
        hoverinfo="skip",
    )


def _line(rows: Sequence[Row]) -> Scatter:
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"] or "") for row in rows],
        mode="lines+markers" if len(rows) < 2 else "lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        name="estimate of the leader",
        hovertemplate="%{customdata}<br>%{y:.3f} after %{x:,}<extra></extra>",
    )


def _last(row: Row) -> Scatter:
    """A separate mark with the interval after the last round."""
    has_interval = row["lower"] is not None and row["upper"] is not None
    ends = [row["upper"] - row["estimate"], row["estimate"] - row["lower"]] if has_interval else [0.0, 0.0]
    return Scatter(
        x=[row["comparisons"]],
        y=[row["estimate"]],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [ends[0]],
            "arrayminus": [ends[1]],
            "color": BLUE,
            "thickness": 2,
            "width": 5,
        },
        mode="markers",
        marker={"color": BLUE, "size": 7},
        name="after the last round",
        hoverinfo="skip",
    )


def _add_left(figure: Figure, out_at: Sequence[int], *, candidates: int, end: int) -> None:
    """Add a line with the number of candidates that are not eliminated."""
    left = [candidates - number for number in range(len(out_at) + 1)]
    figure.add_trace(
        Scatter(
            x=[0, *out_at, end],
            y=[*left, left[-1]],
            yaxis="y2",
            mode="lines",
            line={"color": GREEN, "width": 2, "dash": "dot", "shape": "hv"},
            name="candidates not eliminated",
            hovertemplate="%{y} candidates not eliminated after %{x:,}<extra></extra>",
        )
    )
    figure.update_layout(
        yaxis2={
            "title": "candidates not eliminated",
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.05 * candidates],
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
            "tickformat": ",d",
            # Whole numbers only: a tick at 9.6 candidates would be labelled 9.
            "tickmode": "linear",
            "dtick": max(1, ceil(candidates / 5)),
        }
    )


def _new_leaders(rows: Sequence[Row]) -> Scatter:
    return Scatter(
        x=[row["comparisons"] for row in rows],
        y=[row["estimate"] for row in rows],
        customdata=[as_label(row["best"]) for row in rows],
        mode="markers",
        marker={"color": ORANGE, "size": 8},
        name="new leader",
        hovertemplate="%{customdata} leads<br>%{y:.3f} after %{x:,}<extra></extra>",
    )


def _name_above(figure: Figure, rows: Sequence[Row], *, end: int) -> None:
    """Add names of leaders above their dots, the last leaders first, as far as there is space."""
    free, named = 1.0, []
    for row in reversed(rows):
        name = shortened(row["best"])
        place = row["comparisons"] / max(end, 1)
        is_left = place < 0.5
        reach = NAME_WIDTH * len(name)
        if (place + reach if is_left else place) > free:
            continue
        free = place if is_left else place - reach
        named.append(
            {
                "x": row["comparisons"],
                "y": 1.0,
                "yref": "paper",
                "yanchor": "bottom",
                "xanchor": "left" if is_left else "right",
                "text": name,
                "showarrow": False,
                "name": WIDE,
            }
        )
    # Add all at once: with each single addition, Plotly checks all earlier ones again.
    figure.update_layout(annotations=named)


def excess(points: Sequence[tuple[int, float]], *, unit: str) -> Figure:
    """A step line of the proven upper bound on how much better another candidate can be.

    Args:
        points: Pairs of comparisons spent and the bound, in order; at least one.
        unit: Title of the horizontal axis: the word for comparisons.
    """
    changes = [
        pair
        for number, pair in enumerate(points)
        if number == 0 or pair[1] != points[number - 1][1] or number == len(points) - 1
    ]
    spent, most = zip(*changes, strict=True)
    line = Scatter(
        x=spent,
        y=most,
        mode="lines+markers" if len(changes) < 3 else "lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        name="no candidate is better by more than",
        hovertemplate="%{y:.3f} after %{x:,}<extra></extra>",
    )
    return styled(
        Figure([line]),
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis={"title": "better by at most", "rangemode": "tozero"},
        showlegend=False,
    )


def allocation(rows: Sequence[Row], *, unit: str) -> Figure:
    """Bars of comparisons per candidate, with and without an outcome.

    Args:
        rows: One row per candidate, with `candidate`, `scored` and `unscored`.
        unit: Title of the horizontal axis: the word for comparisons.
    """
    figure = Figure([_bar(rows, "scored", "with an outcome", BLUE)])
    if any(row["unscored"] for row in rows):
        figure.add_trace(_bar(rows, "unscored", "without an outcome", ORANGE))
    return _stacked(figure, rows, unit)


def tokens(rows: Sequence[Row]) -> Figure:
    """Bars of input and output tokens per candidate or model.

    Args:
        rows: One row per candidate or model, with `candidate`, `input_tokens` and `output_tokens`.
    """
    read = _bar(rows, "input_tokens", "read (prompts)", GREY)
    return _stacked(Figure([read, _bar(rows, "output_tokens", "written", BLUE)]), rows, "tokens")


def seconds(rows: Sequence[Row]) -> Figure:
    """Bars of engine time per candidate or model, for answering and loading.

    Args:
        rows: One row per candidate or model, with `candidate`, `seconds` and `load_seconds`.
    """
    figure = Figure([_bar(rows, "seconds", "answering", BLUE)])
    if any(row["load_seconds"] for row in rows):
        figure.add_trace(_bar(rows, "load_seconds", "loading", ORANGE))
    return _stacked(figure, rows, "seconds of engine time")


def loads(rows: Sequence[Row]) -> Figure:
    """Bars of loading seconds per model, with the number of loads.

    Args:
        rows: One row per model, with `candidate` (the model's name), `loads` and `load_seconds`.
    """
    bar = _bar(rows, "load_seconds", "loading", ORANGE)
    bar.text = [f"{row['loads']} load{'s' * (row['loads'] > 1)}" for row in rows]
    bar.textposition = "auto"
    return _stacked(Figure([bar]), rows, "seconds")


def _bar(rows: Sequence[Row], key: str, label: str, colour: str) -> Bar:
    return Bar(
        x=[row[key] for row in rows],
        y=[as_label(row["candidate"]) for row in rows],
        orientation="h",
        name=label,
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate=f"%{{y}}<br>%{{x:,.4~r}} {label}<extra></extra>",
    )


def _stacked(figure: Figure, rows: Sequence[Row], unit: str) -> Figure:
    return styled(
        figure,
        rows=len(rows),
        meta=ROWS,
        barmode="stack",
        bargap=0.3,
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis=name_axis([row["candidate"] for row in rows], downwards=True),
        showlegend=len(figure.data) > 1,
    )
