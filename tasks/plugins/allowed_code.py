"""Code that a campaign brings along asks here, at the place where it is about to run, whether it may.

A command that runs a campaign asks its user beforehand, for all that the campaign needs at once. One that
reads asks nothing, and may yet make a judge again, of a database that is a stranger's. So the judge that is
about to run code asks as well, whichever command made it, and so do engines that are about to load a model
with code, and tasks whose examples code makes. Programs that use Winnow as a library, without the command,
have chosen what they run, and nothing is asked of them.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.source_code import file_digests

PROGRAMS_OF_MODELS = "run programs that models write, in a sandbox"
"""What a judge of type code does, as it follows "it would"."""


class NotAllowed(SpecError):
    """Code is about to run, and nobody has allowed it."""


class Act(NamedTuple):
    """An act that runs code."""

    text: str
    """What the code does, as it follows "it would"."""
    digests: Mapping[str, str] | None
    """SHA-256 of each file of the code; None if it has no files here."""


Allows = Callable[[str, Mapping[str, str] | None], bool]
"""A function that tells whether the user has allowed an act, of code with these digests where it has some."""

_allows: Allows | None = None
_known: list[tuple[str, Mapping[str, str] | None]] = []


def function_of(file: str, function: str) -> str:
    """What running a function of a Python file is called, as it follows "it would".

    Args:
        file: The whole path of the file.
        function: The function's name.
    """
    return f"run {function!a} of the Python file {file!a}"


def act_of_function(file: Path, function: str) -> Act:
    """The act of running a function of a Python file, which is read and not run."""
    found = file.resolve()
    return Act(function_of(str(found), function), digests_of(found))


def digests_of(file: Path) -> Mapping[str, str]:
    """Digests of a Python file and of its own modules that it imports; empty if there is no such file."""
    try:
        return file_digests(file) if file.is_file() else {}
    except (OSError, ValueError):
        return {file.stem: _of_nothing()}


def file_digest(file: Path) -> str:
    """SHA-256 of a file of code, hexadecimal."""
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return _of_nothing()


def _of_nothing() -> str:
    """The digest of what cannot be read, which is never what was allowed before."""
    return f"cannot be read ({token_hex(8)})"


def ask_of(allows: Allows | None) -> None:
    """Have this process ask before code runs.

    Args:
        allows: Called with each act, once; None asks nothing any more.
    """
    global _allows
    _allows = allows
    _known.clear()


def require_allowed(
    act: str, digests: Mapping[str, str] | None = None, *, instead: str | None = None
) -> None:
    """Refuse to go on to code that nobody has allowed; each act is asked about once.

    Args:
        act: What the code does, as it follows "it would".
        digests: SHA-256 of each file of the code; None where it is of no file.
        instead: A wider act that allows this one as well.

    Raises:
        NotAllowed: In a sentence that holds the command by which it is allowed.
    """
    if _allows is None or (act, digests) in _known:
        return
    if not any(_allows(each, digests) for each in dict.fromkeys((act, instead or act))):
        raise NotAllowed(
            f"it would {act}, which nobody has allowed here as it stands; winnow validate FILE --trust, of "
            "the campaign's file, allows it if you know where it comes from"
        )
    _known.append((act, digests))
