"""Judges by external libraries, which an extra of the distribution installs."""

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
"""Maximum wall seconds for one output, which also count the time of other processes."""

MEMORY = 2 << 30
"""Maximum bytes of memory for one output."""


def library_judge(name: str, build: str, distributions: Sequence[str], **params: object) -> IsolatedJudge:
    """Create a judge by libraries, which read model outputs in a separate process.

    Args:
        name: The judge's name in a spec.
        build: "module:callable" of Winnow that imports the libraries.
        distributions: Required distributions, the judge's own library first.
        params: Parameters of the callable, JSON values.

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
    """A judge by libraries that compares outputs with targets; its fields are the parameters in a spec."""

    name: ClassVar[str]
    """Its name in a spec."""
    libraries: ClassVar[tuple[str, ...]]
    """The required distributions."""
    build: ClassVar[str]
    """"module:callable" of this package; called with the fields."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        build = f"winnow.tasks.judges.isolated.{self.build}"
        object.__setattr__(
            self, "_isolated", library_judge(self.name, build, self.libraries, **self.settings())
        )

    def settings(self) -> dict[str, object]:
        """The arguments of the callable."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    def judge(self, sample: Sample, /) -> Verdict:
        """The verdict of the process."""
        return self._isolated.judge(sample) if sample.targets else Verdict.unscored(NO_TARGET)
