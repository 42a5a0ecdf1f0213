"""How `winnow` ends: the exit codes, and the one place where errors become a sentence."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from winnow.infra.demo.errors import DemoError
from winnow.storage.errors import StorageError
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.queries.printable import printable

DECIDED = 0
ERROR = 1
USAGE = 2
UNDECIDED = 3
WORSE = 4
FORCED = 130


@contextmanager
def sentences_for_errors() -> Generator[None, None, None]:
    """Turn what a user can act on into one message on standard error and an exit code.

    Anything else that escapes is a bug, and keeps its traceback in the message's place.
    """
    try:
        yield
    except BrokenPipeError:
        # The reader of our output (`| head`) has seen enough.
        sys.stderr.close()
        sys.exit(ERROR)
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        print(f"winnow: {printable(_sentence(error))}", file=sys.stderr)
        sys.exit(code)


def exit_code_of(error: Exception) -> int | None:
    """How a command ends for an error that a user can act on; None for a bug."""
    if isinstance(error, SpecError):
        return USAGE
    return ERROR if isinstance(error, WinnowError | StorageError | DemoError | MemoryError) else None


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return (
            "there is no memory left; nothing that was stored is lost: give the process more, or let "
            "fewer models be loaded at once (execution.max_loaded), and resume"
        )
    return str(error)
