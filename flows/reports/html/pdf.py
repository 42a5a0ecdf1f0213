"""The page as a PDF, printed by a browser that shows no window."""

from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from tempfile import TemporaryDirectory, TemporaryFile

from winnow.tasks.errors import WinnowError
from winnow.tasks.processes.child_process import last_lines, running_process

PATIENCE = 120.0
"""Seconds that the browser may take."""
DRAWING = 20_000
"""Milliseconds of the page's own time for its figures; they pass as fast as it draws."""


def printed(page: bytes) -> bytes:
    """A report's page as a PDF.

    Raises:
        WinnowError: If there is no browser that could print it, or it fails.
    """
    # Imported here: the page alone need not wait for it.
    from choreographer.browsers.chromium import Chromium

    browser = Chromium.find_browser(skip_local=False)
    if browser is None:
        raise WinnowError(
            "--pdf needs Chrome or Chromium to print with, and there is none here: install it (on Debian: "
            "apt-get install chromium), or set BROWSER_PATH to where it is; --html needs none"
        )
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_bytes(page)
        _print(str(browser), source, target)
        return target.read_bytes()


def _print(browser: str, source: Path, target: Path) -> None:
    command = [
        browser,
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
            last = last_lines(said, 1)
    except (OSError, TimeoutExpired) as error:
        raise _failed(str(error)) from error
    if code or not target.exists():
        raise _failed("".join(last).strip() or f"it ended with {code}")


def _failed(what: str) -> WinnowError:
    return WinnowError(
        f"--pdf: the browser could not print the page ({what}); see whether it starts at all (chromium "
        "--headless --no-sandbox --dump-dom about:blank), or set BROWSER_PATH to another one"
    )
