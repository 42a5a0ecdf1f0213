"""Judges by external libraries, which an extra of the package installs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar

from winnow.tasks.judges.isolated.process import IsolatedJudge
from winnow.tasks.judges.protocol import NO_TARGET, Judge, Sample, Verdict
from winnow.tasks.plugins.entry_points import Plugin
from winnow.tasks.plugins.extras import installed_versions

JUDGE_LIMIT = "judge_limit"
"""Reason for an output on which a library exceeded its time or memory."""

SECONDS = 10.0
"""Maximum processor seconds of a library for one output."""

PATIENCE = 120.0
"""Maximum wall seconds for one output, including time taken by other processes."""

MEMORY = 2 << 30
"""Maximum bytes of memory for judging, on top of the loaded libraries."""


def library_judge(name: str, build: str, distributions: Sequence[str], **params: object) -> IsolatedJudge:
    """Create a judge whose libraries read model outputs in a separate process.

    Args:
        name: The judge's name in a spec.
        build: "module:callable" of Winnow that imports the libraries.
        distributions: Required distributions, the judge's own library first.
        params: Parameters of the callable, as JSON values.

    Raises:
        JudgeError: If a required distribution is not installed.
    """
    installed_versions(distributions)
    return IsolatedJudge(
        build,
        params,
        plugin=Plugin(kind="judge", name=name, location=distributions[0]),
        seconds=PATIENCE,
        processor_seconds=SECONDS,
        exhausted=JUDGE_LIMIT,
        memory=MEMORY,
    )


@dataclass(frozen=True, kw_only=True)
class LibraryJudge(Judge[Sample]):
    """Judge that compares outputs with targets by libraries, in a separate process.

    The fields are its parameters in a spec.
    """

    name: ClassVar[str]
    """The judge's name in a spec."""
    libraries: ClassVar[tuple[str, ...]]
    """Required distributions."""
    build: ClassVar[str]
    """Callable of this package, as "module:callable"; called with the fields."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        build = f"winnow.tasks.judges.isolated.{self.build}"
        object.__setattr__(
            self, "_isolated", library_judge(self.name, build, self.libraries, **self.settings())
        )

    def settings(self) -> dict[str, object]:
        """Arguments of the callable `build`."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    def judge(self, sample: Sample, /) -> Verdict:
        """Verdict from the judge's process; unscored if the example has no target."""
        return self._isolated.judge(sample) if sample.targets else Verdict.unscored(NO_TARGET)
