"""Code that a campaign brings along asks here, at the place where it is about to run, whether it may.

A command that runs a campaign asks its user beforehand, for all that the campaign needs at once. One that
reads asks nothing, and may yet make a judge again, of a database that is a stranger's. So the judge that is
about to run code asks as well, whichever command made it. Programs that use Winnow as a library, without the
command, have chosen what they run, and nothing is asked of them.
"""

from collections.abc import Callable

from winnow.tasks.errors import SpecError

PROGRAMS_OF_MODELS = "run programs that models write, in a sandbox"
"""What a judge of type code does, as it follows "it would"."""


class NotAllowed(SpecError):
    """Code is about to run, and nobody has allowed it."""


Allows = Callable[[str], bool]
"""A function that tells whether the user has allowed an act."""

_allows: Allows | None = None
_known: set[str] = set()


def function_of(file: str, function: str) -> str:
    """What running a function of a Python file is called, as it follows "it would".

    Args:
        file: The whole path of the file.
        function: The function's name.
    """
    return f"run {function!a} of the Python file {file!a}"


def ask_of(allows: Allows | None) -> None:
    """Have this process ask before code runs.

    Args:
        allows: Called with each act, once; None asks nothing any more.
    """
    global _allows
    _allows = allows
    _known.clear()


def require_allowed(act: str) -> None:
    """Refuse to go on to code that nobody has allowed; each act is asked about once.

    Raises:
        NotAllowed: In a sentence that holds the command by which it is allowed.
    """
    if _allows is None or act in _known:
        return
    if not _allows(act):
        raise NotAllowed(
            f"it would {act}, which nobody has allowed here; winnow validate FILE --trust, of the campaign's "
            "file, allows it if you know where it comes from"
        )
    _known.add(act)
