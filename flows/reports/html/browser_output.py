"""Print a page to PDF, and draw its figures as PNG, with a headless browser."""

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
"""Width of a figure on the widest page, in pixels."""
TITLE_WIDTH, TITLE_LINE, TITLE_GAP = 110, 20, 12
"""Characters per line of a title, height of a line, and gap below the title, both in pixels."""
CAPTION_SIZE = 13
"""Font size of the caption below a title, in pixels."""
SCALE = 2
"""Picture pixels per page pixel."""
PATIENCE = 120.0
"""Maximum seconds for printing a page."""
DRAWING = 20_000
"""Virtual page time for drawing the figures, in milliseconds; it passes as fast as the browser draws."""


def as_pdf(page: bytes) -> bytes:
    """Print a report's page to PDF.

    Raises:
        WinnowError: If there is no browser, or it cannot print the page.
    """
    # Imported here and below, because the import takes a quarter of a second, and the page does not need it.
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
            # Needed if the user is root. The page is trusted, and its policy permits no requests.
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
    """Draw each section's figure as PNG in light colours and page width, by file name.

    File names are numbered in page order.

    Args:
        sections: Sections of the page; those without a figure are left out.
        title: Sentence above each figure, so that a picture on a slide shows the result.

    Raises:
        WinnowError: If there is no browser, or it cannot draw the figures.
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
    """Add a sentence and a caption above a figure, and increase its height by as much; return the figure."""
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
        paper_bgcolor="white",  # a transparent picture is unreadable on dark slides
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
        # Without MathJax, which would need the network, and would interpret dollar signs in names.
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
        # Further arguments of a browser's error are advice.
        why = " ".join(str(failure.args[0]).split()).rstrip(".") if failure.args else type(failure).__name__
        raise _failed("--png", "draw the figures", why) from failure


def _missing(option: str, use: str) -> WinnowError:
    return WinnowError(
        f"{option} needs Chrome or Chromium to {use}, and neither is installed: install Chromium (on Debian: "
        "apt-get install chromium), or set BROWSER_PATH to the browser; --html needs no browser"
    )


def _failed(option: str, use: str, why: str) -> WinnowError:
    return WinnowError(
        f"{option}: the browser could not {use} ({why}); check that it starts (chromium --headless "
        "--no-sandbox --dump-dom about:blank), or set BROWSER_PATH to another browser"
    )
