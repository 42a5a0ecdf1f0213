"""Figures as PNG pictures of the size of a slide, drawn by a browser that shows no window."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from plotly.graph_objects import Figure

from winnow.flows.reports.html.figures.labels import as_label
from winnow.flows.reports.html.figures.theme import themes
from winnow.flows.reports.html.model import SpecModel
from winnow.tasks.errors import WinnowError

WIDTH, HEIGHT, SCALE = 1600, 900, 2
"""Of a slide in pixels, and how many pixels of the picture make one of them."""
FONT_SIZE, LEAST_FONT_SIZE = 20, 11
ROOM = 620
"""Pixels that rows of candidates may share."""


def pictures(sections: Sequence[SpecModel]) -> dict[str, bytes]:
    """File name -> PNG of each section that has a figure, numbered as they stand on the page.

    Raises:
        WinnowError: If there is no browser that could draw them, or it fails.
    """
    drawn = [section for section in sections if section.figure is not None]
    if not drawn:
        return {}
    names = [f"{number:02}-{section.name}.png" for number, section in enumerate(drawn, 1)]
    with TemporaryDirectory() as folder:
        _draw([as_slide(section) for section in drawn], [Path(folder) / name for name in names])
        return {name: (Path(folder) / name).read_bytes() for name in names}


def as_slide(section: SpecModel) -> Figure:
    """A copy of a section's figure with its title, and letters that can be read from afar."""
    assert section.figure is not None
    slide = Figure(section.figure)
    names = slide.layout.yaxis.categoryarray or ()
    small = max(LEAST_FONT_SIZE, min(FONT_SIZE, ROOM // max(1, len(names))))
    slide.update_layout(
        template=themes()["light"],
        title={"text": as_label(section.title), "font": {"size": 34}, "x": 0.03, "y": 0.95},
        font={"size": FONT_SIZE},
        margin={"l": 50, "r": 60, "t": 140, "b": 50},
        paper_bgcolor="white",
        width=WIDTH,
        height=HEIGHT,
    )
    slide.update_yaxes(tickfont={"size": small})
    return slide


def _draw(slides: Sequence[Figure], paths: Sequence[Path]) -> None:
    # These take a quarter of a second, which the page alone need not wait for.
    import kaleido
    from choreographer import errors

    size = {"format": "png", "width": WIDTH, "height": HEIGHT, "scale": SCALE}
    orders = [{"fig": slide, "path": path, "opts": size} for slide, path in zip(slides, paths, strict=True)]
    try:
        # Without MathJax, which would be fetched, and would read the dollars in names.
        failures = kaleido.write_fig_from_object_sync(orders, kopts={"mathjax": False})
    except errors.ChromeNotFoundError as error:
        raise WinnowError(
            "--png needs Chrome or Chromium to draw with, and there is none here: install it (on Debian: "
            "apt-get install chromium), or set BROWSER_PATH to where it is; --html needs none"
        ) from error
    except (
        errors.BrowserClosedError,
        errors.BrowserDepsError,
        errors.BrowserFailedError,
        errors.ChannelClosedError,
        TimeoutError,
    ) as error:
        raise _failed(error) from error
    if failures:
        raise _failed(failures[0]) from failures[0]


def _failed(error: Exception) -> WinnowError:
    # Browsers' errors come with advice as further arguments.
    what = " ".join(str(error.args[0]).split()).rstrip(".") if error.args else type(error).__name__
    return WinnowError(
        f"--png: the browser could not draw the figures ({what}); see whether it starts at all (chromium "
        "--headless --no-sandbox --dump-dom about:blank), or set BROWSER_PATH to another one"
    )
