"""Libraries that some judges rest on. They come with an extra of the distribution, and need not be there."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated.process import IsolatedJudge
from winnow.tasks.plugins.entry_points import Plugin
from winnow.tasks.plugins.extras import pip_command

JUDGE_LIMIT = "judge_limit"
"""Reason of an output on which a library took more time or memory than it may."""

SECONDS = 10.0
"""The longest that a library may take for one output, in time of a processor."""

PATIENCE = 120.0
"""The longest that it may take by the clock, which counts what other processes take, too."""

MEMORY = 2 << 30
"""Bytes that it may take for one output."""


def versions(distributions: Sequence[str]) -> dict[str, str]:
    """The version of each distribution, as installed.

    Raises:
        JudgeError: If one is not.
    """
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            raise JudgeError(
                f"needs the package {name}, which is not installed; run: {pip_command('judges')}",
                "judge.type",
            ) from None
    return found


def library_judge(name: str, build: str, distributions: Sequence[str], **params: object) -> IsolatedJudge:
    """A judge by libraries, which read what models write, in a process of its own.

    Args:
        name: The judge's name in a spec.
        build: "module:callable" of Winnow, which imports the libraries.
        distributions: Distributions that have to be installed, the judge's own library first.
        params: Parameters of the callable, JSON values.

    Raises:
        JudgeError: If one is not installed.
    """
    versions(distributions)
    return IsolatedJudge(
        build,
        params,
        plugin=Plugin(kind="judge", name=name, location=distributions[0]),
        seconds=PATIENCE,
        processor_seconds=SECONDS,
        exhausted=JUDGE_LIMIT,
        memory=MEMORY,
    )
