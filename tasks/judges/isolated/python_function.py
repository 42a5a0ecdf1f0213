"""Judge by a user's function, in a file next to the campaign's file.

    def score(sample):
        return 1.0 if sample.output.strip() in sample.targets else 0.0

The function is called with a `Sample` and returns a number, or a `Verdict` for more detail. It runs in a
separate process that can import from the file's folder. Its identity is the content of its file and of the
modules that it imports from that folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated.process import IsolatedJudge, IsolationFailed
from winnow.tasks.judges.protocol import JUDGE_FAILED, Judge, Sample, Scale, Verdict
from winnow.tasks.plugins import python_files
from winnow.tasks.plugins.allowed_code import function_of, require_allowed
from winnow.tasks.plugins.entry_points import Plugin
from winnow.tasks.plugins.source_code import file_digests

_PATH = "judge.path"


@dataclass(frozen=True, kw_only=True)
class PythonJudge(Judge[Sample]):
    """Score by your own function in a Python file; needs --trust."""

    scale: ClassVar = Scale(
        unit="number within `range`, by default 0 to 1", formula="(number - low) / (high - low)"
    )

    path: Annotated[str, Field(min_length=1)]
    """File and name of the function, such as "my_judge.py:score"."""
    range: Annotated[Sequence[float], Field(min_length=2, max_length=2)] = (0.0, 1.0)
    """Lowest and highest number that the function may return; they score 0 and 1."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Maximum seconds of the function for one output."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)
    _act: tuple[str, Mapping[str, str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = self.range
        if not (isfinite(low) and isfinite(high) and low < high):
            raise JudgeError(f"must be [low, high] with low below high, got {[low, high]}", "judge.range")
        file, function = locate_function(self.path)
        try:
            python_files.require_bound(file, function)
        except ValueError as error:
            raise JudgeError(str(error), _PATH) from error
        params = {
            "file": str(file),
            "function": function,
            "low": low,
            "high": high,
            "digests": digests(file),
        }
        isolated = IsolatedJudge(
            "winnow.tasks.judges.isolated.user_function:loaded",
            params,
            plugin=Plugin(kind="judge", name="python", location=f"{file.stem}:{function}"),
            seconds=self.timeout,
            exhausted=JUDGE_FAILED,
        )
        object.__setattr__(self, "_isolated", isolated)
        object.__setattr__(self, "_act", (function_of(str(file), function), params["digests"]))

    def try_out(self) -> None:
        """Import the file in the judge's process; see `Judge`.

        Raises:
            JudgeError: If the import fails.
            NotAllowed: If the user has not permitted the code.
        """
        require_allowed(*self._act)
        try:
            self._isolated.start()
        except IsolationFailed as error:
            raise JudgeError(f"{error}; correct {self.path}", _PATH) from None

    @staticmethod
    def code(path: str, **others: object) -> JsonObject:
        """Identity of the function's code: digests of its file and of modules from its folder."""
        return {"files": digests(locate_function(path)[0])}

    def judge(self, sample: Sample) -> Verdict:
        """Verdict of the function; a reason if it raises, hangs or returns an invalid number.

        Raises:
            NotAllowed: If the user has not permitted its code.
        """
        require_allowed(*self._act)
        return self._isolated.judge(sample)


def locate_function(path: str) -> tuple[Path, str]:
    """File and name of the function that a path "FILE.py:FUNCTION" names.

    Raises:
        JudgeError: If the file does not exist, or the path names no function.
    """
    try:
        return python_files.locate_function(path)
    except ValueError as error:
        raise JudgeError(str(error), _PATH) from None


def digests(file: Path) -> dict[str, str]:
    """Digests from `file_digests`.

    Raises:
        JudgeError: If the file cannot be read.
    """
    try:
        return file_digests(file)
    except OSError as error:
        raise JudgeError(f"the file {str(file)!r} cannot be read ({error.strerror})", _PATH) from error
