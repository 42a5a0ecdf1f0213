"""Entry point of the command `winnow`: settings of the process, then the command line."""

import atexit
import codecs
import gc
import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from winnow.flows.prefect_support.environment import settle_environment
from winnow.flows.reports.output import tell
from winnow.tasks.plugins.allowed_code import ask_of

GARBAGE = 50_000
"""Number of new objects after which Python collects garbage."""


def main() -> None:
    """Run the command line, and exit."""
    open_standard_streams()
    escape_unencodable()
    _require_folder()
    # Selectors multiply many small matrices. There, more threads cost time, and sums, and so the last bit of
    # an estimate, would depend on the number of cores. Engines do not use this library.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Objects of imports and rows stay alive: a collection every 700 objects takes a tenth of `status`.
    gc.set_threshold(GARBAGE)
    atexit.register(leave_garbage)
    # Else processes that Python or a library starts with -c or -m import from the working folder first.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    settle_environment()
    # Imported late, because Prefect, which these modules may import, reads the settings above.
    from winnow.flows.cli import app
    from winnow.flows.exit_codes import sentences_for_errors

    ask_of(_allows)
    try:
        with sentences_for_errors():
            app()
    finally:
        ask_of(None)


def _allows(act: str, digests: Mapping[str, str] | None) -> bool:
    """Whether the user permits code that is about to run, with these digests of its files."""
    from winnow.flows.run.trust_prompt import allows

    return allows(act, digests)


def leave_garbage() -> None:
    """Skip the final garbage collection, which only slows exit, unless torch was imported.

    With torch, its libraries would print resources that were not released.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def open_standard_streams() -> None:
    """Open missing standard streams as null devices.

    Python sets a missing stream to None, which cannot be written to. The next opened file, such as a
    database, would get the missing stream's file descriptor, and libraries would print into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 -- gets the stream's number, the lowest free one
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


ESCAPES = "winnow-escapes"
"""Name of the error handler for characters that standard output cannot encode."""


def escape_unencodable() -> None:
    r"""Make standard output write characters that its encoding lacks as \uXXXX; report it once.

    An error handler that the user has set, such as by PYTHONIOENCODING=ascii:replace, is kept.
    """
    if not isinstance(sys.stdout, io.TextIOWrapper) or sys.stdout.errors != "strict":
        return
    if codecs.lookup(sys.stdout.encoding).name == "utf-8":
        return
    codecs.register_error(ESCAPES, Escapes(sys.stdout.encoding))
    sys.stdout.reconfigure(errors=ESCAPES)


@dataclass
class Escapes:
    r"""Encoding error handler that writes \uXXXX, so that JSON stays valid and keeps its content."""

    encoding: str
    has_warned: bool = False

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        """Escapes for the unencodable characters, and the position at which to continue."""
        if not isinstance(error, UnicodeEncodeError):
            raise error
        if not self.has_warned:
            self.has_warned = True
            tell(
                f"standard output is {self.encoding}, so other characters are written as \\uXXXX; set "
                "PYTHONIOENCODING=utf-8 to write them"
            )
        lacking = error.object[error.start : error.end]
        return json.dumps(lacking)[1:-1], error.end


def _require_folder() -> None:
    """Exit with a message if the working folder was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        sys.exit("winnow: the current folder was removed; change to an existing one")


if __name__ == "__main__":
    main()
