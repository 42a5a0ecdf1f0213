"""The page as a PDF and its figures as PNG files, both made by a headless browser."""

from collections.abc import Sequence
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from tempfile import TemporaryDirectory, TemporaryFile
from textwrap import wrap

from plotly.graph_objects import Figure

from winnow.flows.reports.html.figures.labels import as_label
from winnow.flows.reports.html.figures.theme import themes
from winnow.flows.reports.html.model import Section
from winnow.tasks.errors import WinnowError
from winnow.tasks.processes.child_process import last_lines, running_process

WIDTH = 952
"""Pixels of a figure's width on the widest page."""
TITLE_WIDTH, TITLE_LINE, TITLE_GAP = 110, 20, 12
"""Characters of a line of a title, and pixels of a line and below the last one."""
CAPTION_SIZE = 13
"""Pixels of the letters of the caption below a title."""
SCALE = 2
"""Picture pixels per page pixel."""
PATIENCE = 120.0
"""Seconds for printing."""
DRAWING = 20_000
"""Milliseconds of virtual page time for its figures; they pass as fast as it draws."""


def printed(page: bytes) -> bytes:
    """A report's page as a PDF.

    Raises:
        WinnowError: If no browser can print it, or it fails.
    """
    # Imported here, as below: this takes a quarter of a second, which the page alone does not need.
    from choreographer.browsers.chromium import Chromium

    browser = Chromium.find_browser(skip_local=False)
    if browser is None:
        raise _missing("--pdf", "print")
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_bytes(page)
        command = [
            str(browser),
            "--headless",
            "--disable-gpu",
            # The page is our own, and its policy lets it fetch nothing; as root there is no other way.
            "--no-sandbox",
            "--no-first-run",
            f"--user-data-dir={source.parent / 'profile'}",
            "--no-pdf-header-footer",
            f"--virtual-time-budget={DRAWING}",
            f"--print-to-pdf={target}",
            source.as_uri(),
        ]
        try:
            with TemporaryFile() as said, running_process(command, stdout=said, stderr=STDOUT) as process:
                code = process.wait(PATIENCE)
                last = "".join(last_lines(said, 1)).strip()
        except (OSError, TimeoutExpired) as error:
            raise _failed("--pdf", "print the page", str(error)) from error
        if code or not target.exists():
            raise _failed("--pdf", "print the page", last or f"it ended with {code}")
        return target.read_bytes()


def pictures(sections: Sequence[Section], title: str) -> dict[str, bytes]:
    """File name -> PNG of each section's figure, numbered in page order, in light colours and page width.

    Args:
        sections: The sections.
        title: Sentence above each figure, so that a picture on a slide shows the result.

    Raises:
        WinnowError: If no browser can draw them, or it fails.
    """
    drawn = [section for section in sections if section.figure is not None]
    figures = {
        f"{number:02}-{section.name}.png": titled(
            Figure(section.figure, layout_template=themes()["light"]), title, section.title
        )
        for number, section in enumerate(drawn, 1)
    }
    if not figures:
        return {}
    with TemporaryDirectory() as folder:
        _draw({Path(folder) / name: figure for name, figure in figures.items()})
        return {name: (Path(folder) / name).read_bytes() for name in figures}


def titled(figure: Figure, title: str, caption: str) -> Figure:
    """The figure with a sentence and a caption above it, higher by as much as these take."""
    lines = [as_label(line) for line in wrap(title, TITLE_WIDTH) or [""]]
    lines.append(f'<span style="font-size: {CAPTION_SIZE}px">{as_label(caption)}</span>')
    room = TITLE_LINE * len(lines) + TITLE_GAP
    figure.update_layout(
        title={
            "text": "<br>".join(lines),
            "font": {"size": 15},
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 8},
        },
        margin_t=(figure.layout.margin.t or 0) + room,
        height=(figure.layout.height or 0) + room,
        paper_bgcolor="white",  # else dark slides show through, and hide the letters
    )
    return figure


def _draw(figures: dict[Path, Figure]) -> None:
    import kaleido
    from choreographer import errors

    size = {"format": "png", "width": WIDTH, "scale": SCALE}
    orders = [
        {"fig": figure, "path": path, "opts": {**size, "height": figure.layout.height}}
        for path, figure in figures.items()
    ]
    try:
        # Without MathJax, which would be fetched, and would read the dollars in names.
        failures = kaleido.write_fig_from_object_sync(orders, kopts={"mathjax": False})
    except errors.ChromeNotFoundError as error:
        raise _missing("--png", "draw") from error
    except (
        errors.BrowserClosedError,
        errors.BrowserDepsError,
        errors.BrowserFailedError,
        errors.ChannelClosedError,
        TimeoutError,
    ) as error:
        failures = [error]
    for failure in failures:
        # Browsers' errors come with advice as further arguments.
        why = " ".join(str(failure.args[0]).split()).rstrip(".") if failure.args else type(failure).__name__
        raise _failed("--png", "draw the figures", why) from failure


def _missing(option: str, use: str) -> WinnowError:
    return WinnowError(
        f"{option} needs Chrome or Chromium to {use}, and neither is installed: install Chromium (on Debian: "
        "apt-get install chromium), or set BROWSER_PATH to the browser; --html needs no browser"
    )


def _failed(option: str, use: str, why: str) -> WinnowError:
    return WinnowError(
        f"{option}: the browser could not {use} ({why}); see whether it starts at all (chromium --headless "
        "--no-sandbox --dump-dom about:blank), or set BROWSER_PATH to another one"
    )
