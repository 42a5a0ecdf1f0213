"""Exit codes of `winnow` for answers and errors, and the conversion of errors to sentences."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.infra.demo.errors import DemoError
from winnow.storage.errors import StorageError
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.text.printable import printable

if TYPE_CHECKING:
    from winnow.tasks.queries.status import CampaignStatus

DECIDED = 0
ERROR = 1
USAGE = 2
UNDECIDED = 3
WORSE = 4
FORCED = 130

OF_ANSWERS = (DECIDED, UNDECIDED, WORSE)
"""Exit codes after a run without an error."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""System error numbers of a full disk and of an exceeded quota."""


@contextmanager
def sentences_for_errors() -> Generator[None, None, None]:
    """Turn errors that a user can act on into one message on standard error and an exit code.

    All other exceptions are bugs, and keep their traceback.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # so that an error of the flush becomes a message, too
    except BrokenPipeError:
        # The reader of our output (`| head`) has seen enough.
        sys.stderr.close()
        sys.exit(ERROR)
    except PermissionError as error:
        if error.filename is None:
            raise
        where = "" if Path(error.filename).is_absolute() else " in the working folder"
        remedy = "run it in a folder that you can use, or get the permissions"
        print(f"winnow: {printable(str(error.filename))}{where}: {error.strerror}; {remedy}", file=sys.stderr)
        sys.exit(ERROR)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        # The disk has no room for buffered output either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(
            f"winnow: {error.strerror}: the disk is full; free some space, then run the command again",
            file=sys.stderr,
        )
        sys.exit(ERROR)
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        print(f"winnow: {printable(sentence_of(error))}", file=sys.stderr)
        sys.exit(code)


def exit_code(status: "CampaignStatus") -> int:
    """Exit code of a command that ran a campaign, from the campaign's status afterwards."""
    code = _code_of_outcome(status)
    return code if status.answer.baseline is None else gate_code(status, code)


def _code_of_outcome(status: "CampaignStatus") -> int:
    if not status.is_settled:
        return ERROR
    if status.answer.is_unsolved and not status.answer.allows_all_zero:
        return UNDECIDED
    match status.answer.outcome:
        case "winner" | "tied" | "policy" | "decided":
            return DECIDED
        case "failed":
            return ERROR
        case _:
            return UNDECIDED


def gate_code(status: "CampaignStatus", code: int) -> int:
    """Exit code of a gate.

    The code is 4 if a candidate is shown to be worse, and 0 if all except the baseline are shown to be no
    worse. Else it is 3, also if nothing is guaranteed or every score is 0 without `allow_all_zero`.
    Nothing is shown about a dropped candidate.

    Args:
        status: The campaign's status.
        code: Exit code of the campaign's run; an error code is returned unchanged, unless the campaign
            failed.
    """
    if code not in (DECIDED, UNDECIDED) and status.answer.outcome != "failed":
        return code
    answer = status.answer
    if not answer.is_guaranteed or (answer.is_unsolved and not answer.allows_all_zero):
        return UNDECIDED
    if answer.named("worse"):
        return WORSE
    shown = len(answer.named("no-worse", "better"))
    return DECIDED if shown == len(answer.candidates) - 1 else UNDECIDED


def exit_code_of(error: Exception) -> int | None:
    """Exit code for an error that a user can act on; None for any other error, which is a bug."""
    if isinstance(error, SpecError):
        return USAGE
    if isinstance(error, WinnowError | StorageError | DemoError | MemoryError) or _is_of_proxy(error):
        return ERROR
    return None


def _is_of_proxy(error: Exception) -> bool:
    """Whether httpx refused a proxy from the environment, which Prefect's client uses for every server."""
    is_socks = isinstance(error, ImportError) and "SOCKS proxy" in str(error)
    return is_socks or (isinstance(error, ValueError) and "proxy URL" in str(error))


def sentence_of(error: Exception) -> str:
    """The message for users about an error that has an exit code."""
    if isinstance(error, MemoryError):
        return (
            "out of memory (stored results are safe): give the process more memory, or load fewer models "
            "at once (execution.max_loaded), then resume"
        )
    if _is_of_proxy(error):
        names = sorted(name for name, value in os.environ.items() if value and name.lower() != "no_proxy")
        named = ", ".join(f"${name}" for name in names if name.lower().endswith("_proxy"))
        is_socks = isinstance(error, ImportError)
        kind, remedy = ("SOCKS", "pip install socksio, or ") if is_socks else ("such", "")
        return (
            f"a proxy of the environment ({named}) cannot be used: {kind} proxies are not supported; "
            f"{remedy}unset it, or set it to a proxy that begins with http://"
        )
    return str(error)
