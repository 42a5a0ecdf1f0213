"""Show Plotly figures that keep a reader's zoom when their data change.

Streamlit's own element is created again whenever its figure changes, which loses the zoom.
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
"""Path of Plotly's script on the dashboard's server."""
DAY = 86_400
"""Seconds for which a browser may cache Plotly's script."""


def show_figure(figure: Figure, *, key: str, of: str | None = None) -> None:
    """Show a figure of the report in the page's colours.

    Args:
        figure: The figure; its template is changed in place.
        key: Key of the figure on its page.
        of: Name of the figure's subject, such as a campaign. The zoom is kept while the subject is the same;
            for None, while the figure exists.
    """
    # Change it in place: copying a figure takes Plotly ten times as long as everything else here.
    figure.layout.template = themes()["dark" if st.context.theme.type == "dark" else "light"]
    library = f"{ADDRESS}?version={plotly.__version__}"
    written = to_json(figure, validate=False)
    with st.container(key=key):
        _component()(data={"figure": written, "revision": of, "library": library}, key=f"plot-{key}")


def library_route() -> Route:
    """The route of Plotly's script; access is checked as for all other addresses."""
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
