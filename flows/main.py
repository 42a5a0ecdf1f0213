"""The command `winnow`."""

import atexit
import gc
import os
import sys
from pathlib import Path

from winnow.flows.prefect_support.server import WORK_FOLDER, settle_environment

GARBAGE = 50_000
"""New objects after which Python looks for garbage among them."""


def main() -> None:
    """Run the command line; never returns."""
    open_standard_streams()
    _require_folder()
    # Selectors multiply many small matrices: more threads cost time there, and would let sums, and so the
    # last bit of an estimate, depend on the number of cores. Engines do not use this library.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What imports and rows make lives on: to look for garbage every 700 objects is a tenth of `status`.
    gc.set_threshold(GARBAGE)
    atexit.register(leave_garbage)
    settle_environment(WORK_FOLDER / "prefect")
    # Imported late: reading the settings above must come before anything that may import Prefect.
    from winnow.flows.cli import app
    from winnow.flows.exit_codes import sentences_for_errors

    with sentences_for_errors():
        app()


def leave_garbage() -> None:
    """Keep Python from collecting garbage as it ends, which nothing needs, unless torch was imported.

    With torch come libraries that print whatever is not given back to them by then.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def open_standard_streams() -> None:
    """Open standard streams that we were started without, to and from nowhere.

    Python has None in their place, which nobody can write to; and the next file that is opened, a database's
    for one, would get the number of one, to which engines and libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115 -- gets the lowest number that is free: theirs
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _require_folder() -> None:
    """Refuse to run where the working folder has been removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        sys.exit("winnow: the folder that you are in has been removed; change to one that is there")


if __name__ == "__main__":
    main()
