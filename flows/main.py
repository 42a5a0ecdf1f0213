"""The command `winnow`."""

import os
from pathlib import Path

from winnow.flows.prefect_support.server import settle_environment

WORK_FOLDER = Path(".winnow")
"""Where logs, the temporary Prefect server's files and the demo go, under the current directory."""


def main() -> None:
    """Run the command line; never returns."""
    # Selectors multiply many small matrices: more threads cost time there, and would let sums, and so the
    # last bit of an estimate, depend on the number of cores. Engines do not use this library.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    settle_environment(WORK_FOLDER / "prefect")
    # Imported late: reading the settings above must come before anything that may import Prefect.
    from winnow.flows.cli import app
    from winnow.flows.exit_codes import sentences_for_errors

    with sentences_for_errors():
        app()


if __name__ == "__main__":
    main()
