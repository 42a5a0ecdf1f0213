"""Figures that a browser draws, and redraws as they change; a reader's zoom stays.

Streamlit's own element is thrown away whenever its figure changes, and a zoom with it.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path

import plotly
import streamlit as st
from plotly.graph_objects import Figure
from plotly.io import to_json
from starlette.requests import Request
from starlette.responses import FileResponse
from starlette.routing import Route
from streamlit.components.v2.types import ComponentRenderer

from winnow.flows.reports.html.figures.theme import narrow_script, themes

ADDRESS = "/winnow-plotly.js"
"""The address of the library that draws figures, on the dashboard's server."""
DAY = 86_400
"""Seconds that a browser may keep it."""


def show_figure(figure: Figure, *, key: str, of: str | None = None) -> None:
    """A figure of the report, which is given the colours of the page.

    Args:
        figure: Is changed.
        key: Key of the figure on its page.
        of: Name of the figure's subject, such as a campaign: a zoom lasts as long as this stays the same;
            without it, as long as the figure does.
    """
    # In place: to copy a figure takes plotly ten times as long as all else here.
    figure.layout.template = themes()["dark" if st.context.theme.type == "dark" else "light"]
    library = f"{ADDRESS}?version={plotly.__version__}"
    written = to_json(figure, validate=False)
    with st.container(key=key):
        _component()(data={"figure": written, "revision": of, "library": library}, key=f"plot-{key}")


def library_route() -> Route:
    """The route that serves the library; access to it is checked as for all other addresses."""
    file = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

    async def answer(_: Request) -> FileResponse:
        kept = {"cache-control": f"private, max-age={DAY}"}
        return FileResponse(file, media_type="text/javascript", headers=kept)

    return Route(ADDRESS, answer)


@cache
def _component() -> ComponentRenderer:
    script = (files("winnow.flows.reports.dashboard.plots") / "plot.js").read_text("utf-8")
    return st.components.v2.component(
        "winnow_plot",
        html='<div class="winnow-plot"></div>',
        js=narrow_script() + script,
        isolate_styles=False,
    )
