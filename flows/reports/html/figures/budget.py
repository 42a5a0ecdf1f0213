"""Figures of spending: comparisons, tokens and seconds by candidate."""

from collections.abc import Sequence

from plotly.graph_objects import Bar, Figure

from winnow.flows.reports.html.figures.labels import as_label, name_axis
from winnow.flows.reports.html.figures.theme import BLUE, GREY, ORANGE, ROWS, dressed
from winnow.storage.json_types import Row


def allocation(rows: Sequence[Row], *, unit: str) -> Figure:
    """Comparisons per candidate, with and without an outcome.

    Args:
        rows: One per candidate, with `candidate`, `scored` and `unscored`.
        unit: The word for comparisons on the axis.
    """
    figure = Figure([_bar(rows, "scored", "with an outcome", BLUE)])
    if any(row["unscored"] for row in rows):
        figure.add_trace(_bar(rows, "unscored", "without an outcome", ORANGE))
    return _stacked(figure, rows, unit)


def tokens(rows: Sequence[Row]) -> Figure:
    """Input and output tokens per candidate or model.

    Args:
        rows: With `candidate`, `input_tokens` and `output_tokens`.
    """
    read = _bar(rows, "input_tokens", "read (prompts)", GREY)
    return _stacked(Figure([read, _bar(rows, "output_tokens", "written", BLUE)]), rows, "tokens")


def seconds(rows: Sequence[Row]) -> Figure:
    """Engine time per candidate or model, for answering and loading.

    Args:
        rows: With `candidate`, `seconds` and `load_seconds`.
    """
    figure = Figure([_bar(rows, "seconds", "answering", BLUE)])
    if any(row["load_seconds"] for row in rows):
        figure.add_trace(_bar(rows, "load_seconds", "loading", ORANGE))
    return _stacked(figure, rows, "seconds of engine time")


def loads(rows: Sequence[Row]) -> Figure:
    """Loading seconds of each model, with the number of its loads.

    Args:
        rows: One per model, with `candidate`, its name, `loads` and `load_seconds`.
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
    return dressed(
        figure,
        rows=len(rows),
        meta=ROWS,
        barmode="stack",
        bargap=0.3,
        xaxis={"title": unit, "rangemode": "tozero"},
        yaxis=name_axis([row["candidate"] for row in rows], downwards=True),
        showlegend=len(figure.data) > 1,
    )
