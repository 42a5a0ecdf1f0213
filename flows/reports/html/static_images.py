"""The page's figures as PNG pictures, drawn by a browser that shows no window."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from plotly.graph_objects import Figure

from winnow.flows.reports.html.figures.theme import themes
from winnow.flows.reports.html.model import Section
from winnow.tasks.errors import WinnowError

WIDTH = 952
"""Pixels of a figure's width on the widest page."""
SCALE = 2
"""Pixels of the picture that make one of the page."""


def pictures(sections: Sequence[Section]) -> dict[str, bytes]:
    """File name -> PNG of each section's figure, numbered in the order of the page; light, as wide as there.

    Raises:
        WinnowError: If there is no browser that could draw them, or it fails.
    """
    drawn = [section for section in sections if section.figure is not None]
    figures = {
        f"{number:02}-{section.name}.png": Figure(section.figure, layout_template=themes()["light"])
        for number, section in enumerate(drawn, 1)
    }
    if not figures:
        return {}
    with TemporaryDirectory() as folder:
        _draw(list(figures.values()), [Path(folder) / name for name in figures])
        return {name: (Path(folder) / name).read_bytes() for name in figures}


def _draw(figures: Sequence[Figure], paths: Sequence[Path]) -> None:
    # Imported here: these take a quarter of a second, which the page alone does not need.
    import kaleido
    from choreographer import errors

    orders = [
        {
            "fig": figure,
            "path": path,
            "opts": {"format": "png", "width": WIDTH, "height": figure.layout.height, "scale": SCALE},
        }
        for figure, path in zip(figures, paths, strict=True)
    ]
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
