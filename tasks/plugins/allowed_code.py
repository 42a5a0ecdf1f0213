"""Code that a campaign brings along asks here, at the place where it is about to run, whether it may.

A command that runs a campaign asks its user beforehand, for all that the campaign needs at once. One that
reads asks nothing, and may yet make a judge again, of a database that is a stranger's. So the judge that is
about to run code asks as well, whichever command made it. Programs that use Winnow as a library, without the
command, have chosen what they run, and nothing is asked of them.
"""

from collections.abc import Callable, Mapping

from winnow.tasks.errors import SpecError

PROGRAMS_OF_MODELS = "run programs that models write, in a sandbox"
"""What a judge of type code does, as it follows "it would"."""


class NotAllowed(SpecError):
    """Code is about to run, and nobody has allowed it."""


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


def ask_of(allows: Allows | None) -> None:
    """Have this process ask before code runs.

    Args:
        allows: Called with each act, once; None asks nothing any more.
    """
    global _allows
    _allows = allows
    _known.clear()


def require_allowed(act: str, digests: Mapping[str, str] | None = None) -> None:
    """Refuse to go on to code that nobody has allowed; each act is asked about once.

    Args:
        act: What the code does, as it follows "it would".
        digests: SHA-256 of each file of the code; None where it is of no file.

    Raises:
        NotAllowed: In a sentence that holds the command by which it is allowed.
    """
    if _allows is None or (act, digests) in _known:
        return
    if not _allows(act, digests):
        raise NotAllowed(
            f"it would {act}, which nobody has allowed here as it stands; winnow validate FILE --trust, of "
            "the campaign's file, allows it if you know where it comes from"
        )
    _known.append((act, digests))
