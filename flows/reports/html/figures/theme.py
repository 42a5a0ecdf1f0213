"""The look of all figures: colours that every kind of colour vision tells apart, light and dark; sizes."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from textwrap import wrap
from types import MappingProxyType

from plotly.graph_objects import Figure

from winnow.storage.json_types import JsonObject, JsonView

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8b929c"
LINES = (BLUE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, without the black that a dark page would swallow; orange is kept for what counts."""
WEIGHTS = ((0.0, "#eaf1f7"), (0.5, "#6baed6"), (1.0, "#08519c"))
"""From none to all."""
WINS = ((0.0, ORANGE), (0.5, "#f4f4f4"), (1.0, BLUE))
"""From lost to won, with even in between."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
WIDE = "wide"
"""The `name` of an annotation that is left out of a narrow figure."""
ROWS = "rows"
"""The `meta` of figures whose rows are candidates: where they are narrow, names stand above the marks."""
SQUARE = "square"
"""The `meta` of figures with candidates along both axes: where they are narrow, these are numbered."""
ROW_HEIGHT, FRAME_HEIGHT, LEAST_HEIGHT = 24, 110, 260
"""Pixels: of a candidate's row, of what stands around the rows, and of the smallest figure."""

BESIDE_ONE_VALUE = 0.05
"""The range that an axis shows on either side of a value that is the only one."""
TITLE_WIDTH = 38
"""Characters of an axis's title that a phone has room for in a line."""
NO_AXIS: JsonView = MappingProxyType({})


def themes() -> dict[str, JsonObject]:
    """Plotly templates by colour scheme: everything that differs between light and dark."""
    return {
        "light": _theme(ink="#24292f", lines="#e3e6ea", paper="#ffffff"),
        "dark": _theme(ink="#d7dbe0", lines="#343a43", paper="#16191d"),
    }


def narrow_script() -> str:
    """The script with the function `fitted`, by which a browser lays a figure out for its width."""
    return (files("winnow.flows.reports.html.figures") / "narrow.js").read_text("utf-8")


def dressed(
    figure: Figure,
    *,
    rows: int = 0,
    xaxis: JsonView = NO_AXIS,
    yaxis: JsonView = NO_AXIS,
    **layout: object,
) -> Figure:
    """The figure without colours of its own for ink and paper, and as high as it needs to be.

    Args:
        figure: Is changed and given back.
        rows: Candidates along its vertical axis; 0 for a figure of the usual height.
        xaxis: Settings of the horizontal axis, its title as plain text.
        yaxis: Settings of the vertical axis, likewise.
        layout: Further settings, which differ from figure to figure.
    """
    height = max(LEAST_HEIGHT, FRAME_HEIGHT + ROW_HEIGHT * rows) if rows else 380
    # Set as a whole: plotly takes ten times as long to update it value by value.
    figure.layout = {
        **figure.layout.to_plotly_json(),
        "template": None,
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 36, "b": 8},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "title": None},
        "hoverlabel": {"align": "left"},
        "xaxis": _axis(xaxis),
        "yaxis": _axis(yaxis),
        **layout,
    }
    return figure


def reaching(ends: Sequence[float] | None) -> JsonObject:
    """An axis that shows the range between two values until a reader zooms; an automatic one without them.

    A `range` would put an end to the zoom of a figure that is drawn again with another one. Not for a
    logarithmic axis.
    """
    return {} if ends is None else {"autorangeoptions": {"minallowed": ends[0], "maxallowed": ends[1]}}


def around_one_value(values: Iterable[float | None]) -> JsonObject:
    """An axis that shows little more than the value, where all that are known are one; of itself, else.

    Of itself it would reach from 0 to twice that value.
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
        "gridcolor": lines,
        "zerolinecolor": lines,
        "linecolor": lines,
        "ticks": "",
        "showgrid": True,
        "separatethousands": True,
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
