"""Libraries that some judges rest on. They come with an extra of the distribution, and need not be there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar

from winnow.tasks.judges.isolated.process import IsolatedJudge
from winnow.tasks.judges.protocol import NO_TARGET, Judge, Sample, Verdict
from winnow.tasks.plugins.entry_points import Plugin
from winnow.tasks.plugins.extras import installed_versions

JUDGE_LIMIT = "judge_limit"
"""Reason of an output on which a library took more time or memory than it may."""

SECONDS = 10.0
"""The longest that a library may take for one output, in time of a processor."""

PATIENCE = 120.0
"""The longest that it may take by the clock, which counts what other processes take, too."""

MEMORY = 2 << 30
"""Bytes that it may take for one output."""


def library_judge(name: str, build: str, distributions: Sequence[str], **params: object) -> IsolatedJudge:
    """A judge by libraries, which read model outputs, in a separate process.

    Args:
        name: The judge's name in a spec.
        build: "module:callable" of Winnow, which imports the libraries.
        distributions: Distributions that have to be installed, the judge's own library first.
        params: Parameters of the callable, JSON values.

    Raises:
        JudgeError: If one is not installed.
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
    """A judge by libraries that compares outputs with targets; what a spec may set are its fields."""

    name: ClassVar[str]
    """Its name in a spec."""
    libraries: ClassVar[tuple[str, ...]]
    """The distributions that it rests on."""
    build: ClassVar[str]
    """"module:callable" of this folder; called with the fields."""
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
