"""The command `winnow`."""

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
"""Number of new objects that triggers a garbage collection."""


def main() -> None:
    """Run the command line; never returns."""
    open_standard_streams()
    escape_what_is_lacking()
    _require_folder()
    # Selectors multiply many small matrices: more threads cost time there, and would let sums, and so the
    # last bit of an estimate, depend on the number of cores. Engines do not use this library.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What imports and rows make lives on: to look for garbage every 700 objects is a tenth of `status`.
    gc.set_threshold(GARBAGE)
    atexit.register(leave_garbage)
    # Processes that Python or a library starts with -c or -m would import from the working folder first.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    settle_environment()
    # Imported late: reading the settings above must come before anything that may import Prefect.
    from winnow.flows.cli import app
    from winnow.flows.exit_codes import sentences_for_errors

    ask_of(_allows)
    try:
        with sentences_for_errors():
            app()
    finally:
        ask_of(None)


def _allows(act: str, digests: Mapping[str, str] | None) -> bool:
    """Whether the user has allowed code that is about to run."""
    from winnow.flows.run.trust_prompt import allows

    return allows(act, digests)


def leave_garbage() -> None:
    """Skip the final garbage collection, which only slows exit, unless torch was imported.

    Libraries loaded by torch would then print which resources were not released.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def open_standard_streams() -> None:
    """Open missing standard streams as null devices.

    Otherwise Python sets them to None, which cannot be written to. The next opened file, such as a database,
    would also get the file descriptor of a missing stream, and engines and libraries would print into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 -- gets the lowest number that is free: theirs
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


ESCAPES = "winnow-escapes"
"""Name of the error handler for characters that standard output cannot encode."""


def escape_what_is_lacking() -> None:
    """Make standard output escape characters that its encoding lacks, as in JSON; report it once.

    A handler set by the user, such as by PYTHONIOENCODING=ascii:replace, is kept.
    """
    if not isinstance(sys.stdout, io.TextIOWrapper) or sys.stdout.errors != "strict":
        return
    if codecs.lookup(sys.stdout.encoding).name == "utf-8":
        return
    codecs.register_error(ESCAPES, Escapes(sys.stdout.encoding))
    sys.stdout.reconfigure(errors=ESCAPES)


@dataclass
class Escapes:
    r"""Write characters that an encoding lacks as \uXXXX, so that JSON stays JSON with the same texts."""

    encoding: str
    is_told: bool = False

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        """The escapes of the unencodable characters, and the position at which to continue."""
        if not isinstance(error, UnicodeEncodeError):
            raise error
        if not self.is_told:
            self.is_told = True
            tell(
                f"standard output is {self.encoding}, so other characters are written as \\uXXXX; set "
                "PYTHONIOENCODING=utf-8 to write them"
            )
        lacking = error.object[error.start : error.end]
        return json.dumps(lacking)[1:-1], error.end


def _require_folder() -> None:
    """Refuse to run in a removed working folder."""
    try:
        Path.cwd()
    except FileNotFoundError:
        sys.exit("winnow: the current folder was removed; change to an existing one")


if __name__ == "__main__":
    main()
