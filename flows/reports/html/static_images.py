"""Figures as PNG pictures of the size of a slide, drawn by a browser that shows no window."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from plotly.graph_objects import Figure

from winnow.flows.reports.html.answer_slide import FONT_SIZE, HEIGHT, WIDTH, AnswerSlide, titled
from winnow.flows.reports.html.model import Section
from winnow.tasks.errors import WinnowError

SCALE = 2
"""Pixels of the picture that make one of a slide."""
LEAST_FONT_SIZE = 11
ROOM = 620
"""Pixels that rows of candidates may share."""


def pictures(sections: Sequence[Section], answer: AnswerSlide) -> dict[str, bytes]:
    """File name -> PNG: the answer, then each section that has a figure, numbered as they stand on the page.

    Nothing where no section has a figure.

    Raises:
        WinnowError: If there is no browser that could draw them, or it fails.
    """
    drawn = [section for section in sections if section.figure is not None]
    if not drawn:
        return {}
    slides = {"00-answer.png": answer.figure()}
    for number, section in enumerate(drawn, 1):
        slides[f"{number:02}-{section.name}.png"] = as_slide(section, answer.caption)
    with TemporaryDirectory() as folder:
        _draw(list(slides.values()), [Path(folder) / name for name in slides])
        return {name: (Path(folder) / name).read_bytes() for name in slides}


def as_slide(section: Section, caption: str) -> Figure:
    """A copy of a section's figure with its title and caption, and letters that can be read from afar."""
    assert section.figure is not None
    slide = Figure(section.figure)
    names = slide.layout.yaxis.categoryarray or ()
    small = max(LEAST_FONT_SIZE, min(FONT_SIZE, ROOM // max(1, len(names))))
    titled(slide, section.title, caption)
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
