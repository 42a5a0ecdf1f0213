"""Style of all figures: sizes, and light and dark colours that colour-blind readers can distinguish."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from textwrap import wrap
from types import MappingProxyType

from plotly.graph_objects import Figure

from winnow.storage.json_types import JsonObject, JsonView

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8b929c"
LINES = (BLUE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of Okabe and Ito, without black (invisible on a dark page) and vermilion (marks the leader)."""
WEIGHTS = ((0.0, "#eaf1f7"), (0.5, "#6baed6"), (1.0, "#08519c"))
"""Colours of weights from 0 to 1."""
WINS = ((0.0, ORANGE), (0.5, "#f4f4f4"), (1.0, BLUE))
"""Colours of win rates from 0 to 1, with a neutral grey at 0.5."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
WIDE = "wide"
"""The `name` of an annotation that narrow figures omit."""
ROWS = "rows"
"""The `meta` of figures with one candidate per row: narrow figures put names above the marks."""
SQUARE = "square"
"""The `meta` of figures with candidates along both axes: narrow figures number them."""
ROW_HEIGHT, FRAME_HEIGHT, LEAST_HEIGHT = 24, 110, 200
"""Heights in pixels: one candidate's row, the frame around the rows, and the smallest figure."""

BESIDE_ONE_VALUE = 0.05
"""Range of an axis on each side of a single value."""
TITLE_WIDTH = 38
"""Maximum number of characters per line in an axis title on a phone."""
NO_AXIS: JsonView = MappingProxyType({})


def themes() -> dict[str, JsonObject]:
    """Plotly templates for the light and dark colour schemes, with everything that differs between them."""
    return {
        "light": _theme(ink="#24292f", lines="#e3e6ea", paper="#ffffff"),
        "dark": _theme(ink="#d7dbe0", lines="#343a43", paper="#16191d"),
    }


def narrow_script() -> str:
    """JavaScript with the function `fitted`, which adapts a figure's layout to its width in the browser."""
    return (files("winnow.flows.reports.html.figures") / "narrow.js").read_text("utf-8")


def styled(
    figure: Figure,
    *,
    rows: int = 0,
    xaxis: JsonView = NO_AXIS,
    yaxis: JsonView = NO_AXIS,
    **layout: object,
) -> Figure:
    """Set a figure's axes, margins and legend, and a height that fits its rows.

    Args:
        figure: The figure, which is changed and returned.
        rows: Number of candidates along the vertical axis; 0 for a figure of the usual height.
        xaxis: Settings of the horizontal axis; the title is plain text.
        yaxis: Settings of the vertical axis; the title is plain text.
        layout: Further settings of the layout.
    """
    has_words_above = bool(layout.get("showlegend") or figure.layout.annotations)
    height = max(LEAST_HEIGHT, FRAME_HEIGHT + ROW_HEIGHT * rows) if rows else 380
    # Set the whole layout: Plotly takes ten times as long to update it value by value.
    figure.layout = {
        **figure.layout.to_plotly_json(),
        "template": None,
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 36 if has_words_above else 12, "b": 8},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "title": None},
        "hoverlabel": {"align": "left"},
        "xaxis": _axis(xaxis),
        "yaxis": _axis(yaxis),
        **layout,
    }
    return figure


def reaching(ends: Sequence[float] | None) -> JsonObject:
    """Settings of a linear axis with an initial range between two values; for None, an automatic range.

    The setting `range` would reset a reader's zoom whenever the figure is drawn again.
    """
    return {} if ends is None else {"autorangeoptions": {"minallowed": ends[0], "maxallowed": ends[1]}}


def around_one_value(values: Iterable[float | None]) -> JsonObject:
    """Settings of an axis: a narrow range if all known values are equal, otherwise an automatic range.

    For a single value, the automatic range would be from 0 to twice the value.
    """
    known = {each for each in values if each is not None}
    if len(known) != 1:
        return {}
    (value,) = known
    return reaching((value - BESIDE_ONE_VALUE, value + BESIDE_ONE_VALUE))


def _axis(axis: JsonView) -> JsonObject:
    said = axis.get("title") or ""
    lines = [line for part in said.split("<br>") for line in wrap(part, TITLE_WIDTH)]
    return {**axis, "automargin": True, "title": {"text": "<br>".join(lines), "standoff": 10}}


def _theme(*, ink: str, lines: str, paper: str) -> JsonObject:
    axis = {
        "title": {"font": {"size": 13}},
        "gridcolor": lines,
        "zerolinecolor": lines,
        "linecolor": lines,
        "ticks": "",
        "showgrid": True,
        "separatethousands": True,
        "exponentformat": "none",
    }
    return {
        "layout": {
            "font": {"color": ink, "family": FONT, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hoverlabel": {"bgcolor": paper, "bordercolor": lines, "font": {"color": ink, "family": FONT}},
            "xaxis": axis,
            "yaxis": axis,
        }
    }
