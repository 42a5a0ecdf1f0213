"""Scoring of an lm-eval task by the task's own Python functions.

The functions read outputs of models, which are untrusted. So each output is scored in a separate process that
can only compute; see `scoring_process`. The identity of the functions consists of the content of their files
and of the modules that these import from their folders, and of the versions of imported libraries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.code.inside.confinement import missing
from winnow.tasks.judges.code.judge import escape
from winnow.tasks.judges.code.sandbox import CLOCK_FACTOR
from winnow.tasks.judges.isolated.process import IsolatedJudge, IsolationFailed
from winnow.tasks.judges.protocol import JUDGE_FAILED, Judge, Sample, Scale, Verdict
from winnow.tasks.plugins import python_files
from winnow.tasks.plugins.allowed_code import digests_of, function_of, require_allowed
from winnow.tasks.plugins.entry_points import Plugin
from winnow.tasks.plugins.extras import installed_versions
from winnow.tasks.plugins.source_code import file_digests, libraries_of
from winnow.tasks.spec.judge_tree import functions_of

OutputType = Literal["generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"]


@dataclass(frozen=True, kw_only=True)
class LmEvalJudge(Judge[Sample]):
    """Score by an lm-eval task's own functions, in a confined process; needs --trust."""

    scale: ClassVar = Scale(
        unit="number within `range`, by default 0 to 1", formula="(number - first) / (last - first)"
    )

    metric: Annotated[str, Field(min_length=1)]
    """Name of the metric that gives the score: a key of the function's result."""
    process_results: str | None = None
    """The task's function of a document and the results, as FILE.py:FUNCTION."""
    function: str | None = None
    """The metric's own function, as FILE.py:FUNCTION, instead of `process_results`. Without either,
    `exact_match` is applied after the filters."""
    filters: Sequence[JsonObject] = ()
    """Filters, applied in order, as in a task's filter_list; a filter's function may be FILE.py:CLASS."""
    options: Annotated[JsonObject, Field(default_factory=dict)] = field(default_factory=dict)
    """Options of the metric."""
    output_type: OutputType = "generate_until"
    """Type of request to models, as lm-eval names it."""
    range: Annotated[Sequence[float], Field(min_length=2, max_length=2)] = (0.0, 1.0)
    """Numbers that score 0 and 1; [1, 0] if lower is better."""
    timeout: Annotated[int, Field(ge=1, le=3600)] = 60
    """Maximum processor seconds for one output; the wall time may be five times as long."""
    memory: Annotated[int, Field(ge=16, le=1 << 20)] = 2048
    """Maximum memory for one output, in MiB."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)
    _acts: Sequence[tuple[str, Mapping[str, str]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first, last = self.range
        if not (isfinite(first) and isfinite(last) and first != last):
            raise JudgeError(f"must be two different finite numbers, got {[first, last]}", "judge.range")
        if self.process_results is not None and self.function is not None:
            raise JudgeError("set process_results or function, not both", "judge.function")
        if (what := missing()) is not None:
            raise JudgeError(_refusal(f"this machine lacks {what}"), "judge.type")
        named = {**_own(self), "filters": self.filters}
        placed = [_located(each, f"judge.{key}") for key, each in functions_of(named)]
        digests = _digests(placed)
        params = {
            **_own(self),
            "metric": self.metric,
            "filters": list(self.filters),
            "options": dict(self.options),
            "output_type": self.output_type,
            "functions": [(str(file), name) for file, name in placed],
            "digests": digests,
            "limits": {"seconds": self.timeout, "memory": self.memory << 20},
            "range": [first, last],
        }
        isolated = IsolatedJudge(
            "winnow.tasks.judges.code.scoring_process:loaded",
            params,
            plugin=Plugin(kind="judge", name="lm-eval", location=self.metric),
            seconds=self.timeout * CLOCK_FACTOR + 10.0,  # the scoring process ends longer calls itself
            exhausted=JUDGE_FAILED,
        )
        object.__setattr__(self, "_isolated", isolated)
        acts = [(function_of(str(file), name), digests_of(file)) for file, name in placed]
        object.__setattr__(self, "_acts", acts)

    @staticmethod
    def code(**params: object) -> JsonObject:
        """Digests of the functions' files and own modules, and versions of imported libraries."""
        placed = [_located(each, f"judge.{key}") for key, each in functions_of(params)]
        libraries = {name for file, _ in placed for name in libraries_of(file)}
        return {"files": _digests(placed), "libraries": installed_versions(sorted(libraries))}

    def try_out(self) -> None:
        """Test the confinement, and import the files; see `Judge`.

        Raises:
            JudgeError: If the confinement does not work here, or an import fails.
            NotAllowed: If the user has not permitted the code.
        """
        self._require_allowed()
        if (why := escape()) is not None:
            raise JudgeError(_refusal(f"it does not hold here: {why}"), "judge.type")
        try:
            self._isolated.start()
        except IsolationFailed as error:
            raise JudgeError(f"{error}; install what it imports, or write a judge next to the task") from None

    def judge(self, sample: Sample) -> Verdict:
        """Score by the metric's value; unscored if the function fails, hangs or gives no valid number.

        Raises:
            NotAllowed: If the user has not permitted its code.
        """
        self._require_allowed()
        return self._isolated.judge(sample)

    def _require_allowed(self) -> None:
        for act in self._acts:
            require_allowed(*act)


def _own(judge: LmEvalJudge) -> dict[str, str | None]:
    return {"process_results": judge.process_results, "function": judge.function}


def _located(path: str, place: str) -> tuple[Path, str]:
    try:
        file, name = python_files.locate_function(path)
        python_files.require_bound(file, name)
    except ValueError as error:
        raise JudgeError(str(error), place) from error
    return file, name


def _digests(placed: Sequence[tuple[Path, str]]) -> dict[str, str]:
    """Digests of all files by module name, by which they are imported."""
    found: dict[str, str] = {}
    for file in dict.fromkeys(file for file, _ in placed):
        try:
            own = file_digests(file)
        except OSError as error:
            raise JudgeError(f"the file {str(file)!r} cannot be read ({error.strerror})", "judge") from error
        if unlike := [name for name, digest in own.items() if found.get(name, digest) != digest]:
            raise JudgeError(f"the task's files import two different modules {unlike[0]}", "judge")
        found |= own
    return found


def _refusal(why: str) -> str:
    return (
        f"the task's functions cannot be confined: {why}; score on a machine that has Linux 5.13 or later "
        "with Landlock and seccomp, or write a judge next to the task"
    )
