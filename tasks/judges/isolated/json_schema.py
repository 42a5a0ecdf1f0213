"""Judge of JSON outputs by a schema, with jsonschema.

The whole output must be JSON; the option `extract` removes text around it. An output that is not JSON has no
answer. The schema's $schema selects the draft, by default 2020-12. `format` is not checked, as in the
standard. Nothing is downloaded: every $ref must point into the schema itself.
"""

import json
import re
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import isfinite
from typing import ClassVar, Protocol, cast

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.isolated.libraries import JUDGE_LIMIT, LibraryJudge
from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Sample, Verdict

_PATH = "judge.schema"
_TRIALS: tuple[object, ...] = (None, True, 0, "", [], {}, [0], {"a": 0})
MOST_ANSWER = 1_000
"""Maximum characters of an output that a verdict shows as the answer."""

PATTERN_SECONDS = 1.0
"""Maximum processor seconds of a schema's patterns for one output."""


@dataclass(frozen=True, kw_only=True)
class JsonSchemaJudge(LibraryJudge):
    """The output must be JSON that satisfies a schema, by jsonschema; needs no targets."""

    scale: ClassVar = RIGHT_OR_WRONG
    name: ClassVar = "json-schema"
    build: ClassVar = "json_schema:validator"
    libraries: ClassVar = ("jsonschema", "jsonschema-specifications")

    schema: Mapping[str, object]
    """The JSON schema."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_schema(self.schema, _PATH)

    def judge(self, sample: Sample, /) -> Verdict:
        """Score 1 if the output satisfies the schema, else 0 with the first violation as detail."""
        return self._isolated.judge(sample)


def validator(schema: Mapping[str, object]) -> Callable[[Sample], Verdict]:
    """Create the judging function, for a separate process with a time limit."""
    from jsonschema.exceptions import best_match

    checker = _checker(schema)

    def judge(sample: Sample) -> Verdict:
        try:
            value = json.loads(sample.output, parse_constant=_refuse_constant)
        except ValueError as error:
            return Verdict.unscored("no_answer", detail=f"no JSON: {error}"[:MOST_ANSWER])
        answer = sample.output.strip()[:MOST_ANSWER]
        try:
            with _bounded_patterns():
                wrong = best_match(checker.iter_errors(value))
        except _TooSlow as error:
            return Verdict.unscored(JUDGE_LIMIT, detail=str(error)[:MOST_ANSWER])
        if wrong is None:
            return Verdict(score=1.0, answer=answer)
        detail = f"{wrong.json_path}: {wrong.message}"[:MOST_ANSWER]
        return Verdict(score=0.0, answer=answer, detail=detail)

    return judge


class _TooSlow(Exception):
    """A schema's patterns exceeded their time."""


@contextmanager
def _bounded_patterns() -> Generator[None, None, None]:
    """Limit `re.search`, as jsonschema calls it, to `PATTERN_SECONDS` in total.

    Raises `_TooSlow` beyond the limit. Python's `re` handles signals while it searches; another library would
    change the meaning of patterns.
    """
    search, left = re.search, PATTERN_SECONDS

    def bounded(pattern: str, text: str) -> re.Match[str] | None:
        nonlocal left

        def stop(*_: object) -> None:
            raise _TooSlow(f"the pattern {pattern!r} took over {PATTERN_SECONDS:g} s; simplify it")

        if left <= 0.0:
            stop()
        before, began = signal.signal(signal.SIGPROF, stop), time.process_time()
        signal.setitimer(signal.ITIMER_PROF, left)
        try:
            return search(pattern, text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
            left -= time.process_time() - began

    vars(re)["search"] = bounded
    try:
        yield
    finally:
        vars(re)["search"] = search


class _Wrong(Protocol):
    """A violation of the schema by a value."""

    json_path: str
    message: str


class _Checker(Protocol):
    """The members used here of the classes that jsonschema creates."""

    @classmethod
    def check_schema(cls, schema: Mapping[str, object]) -> None: ...
    def iter_errors(self, instance: object) -> Iterable[_Wrong]: ...
    def is_valid(self, instance: object) -> bool: ...
    def is_type(self, instance: object, type: str) -> bool: ...


def _checker(schema: Mapping[str, object], *, most_refs: int | None = None) -> _Checker:
    """Checker of a schema; raises `OverflowError` after following a $ref `most_refs` times."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend, validator_for
    from jsonschema_specifications import REGISTRY

    def multiple_of(checker: _Checker, step: float, value: object, schema: object) -> Iterator[Exception]:
        if checker.is_type(value, "number") and not is_multiple(cast("float", value), step):
            yield ValidationError(f"{value!r} is not a multiple of {step}")

    draft = validator_for(schema, default=Draft202012Validator)
    follow, followed = draft.VALIDATORS.get("$ref"), count(1)

    def bounded(*args: object) -> Iterator[Exception]:
        if next(followed) > (most_refs or 0):
            raise OverflowError(f"its $refs are followed more than {most_refs} times")
        yield from follow(*args) or ()

    keywords = {"multipleOf": multiple_of} | ({} if most_refs is None else {"$ref": bounded})
    # With an explicit registry, jsonschema downloads nothing.
    return cast("_Checker", extend(draft, keywords)(schema, registry=REGISTRY))


def is_multiple(value: float, step: float) -> bool:
    """Whether a number is a multiple of another in decimal notation, as 19.99 is of 0.01."""
    return isfinite(value) and (_as_written(value) / _as_written(step)).denominator == 1


def _as_written(number: float) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


MOST_REFS = 10_000
"""Maximum number of times that a $ref is followed; it can grow exponentially with the schema."""


def check_schema(schema: Mapping[str, object], path: str) -> None:
    """Refuse an invalid schema, or one with a $ref that points outside or in a circle.

    Raises:
        JudgeError: If the schema is invalid; the message names the position in the schema.
    """
    from jsonschema.exceptions import SchemaError

    try:
        json.dumps(schema, allow_nan=False)
        type(_checker(schema)).check_schema(schema)
        refs = _refs(schema)
    except SchemaError as error:
        # Of several forms that a value can take, the message about the first names the known words.
        why = error.context[0] if error.context else error
        raise JudgeError(f"is not a JSON schema: {error.json_path}: {why.message}", path) from error
    except RecursionError as error:
        raise JudgeError("is nested too deeply; put parts of it in $defs", path) from error
    except (TypeError, ValueError) as error:
        raise JudgeError(f"is not JSON ({error}); write plain values", path) from error
    for ref in refs:
        if not ref.startswith("#"):
            raise JudgeError(f"the $ref {ref!r} points outside the schema; put its target in $defs", path)
    try:
        checker = _checker(schema, most_refs=MOST_REFS)
        for trial in _TRIALS:
            checker.is_valid(trial)
    except RecursionError as error:
        raise JudgeError("a $ref leads back to itself; point it to a schema", path) from error
    except Exception as error:  # jsonschema's error for a $ref without a target is private
        raise JudgeError(f"cannot be used: {str(error)[:200]}; correct its $ref", path) from error


def _refs(value: object) -> list[str]:
    """Values of every $ref in a schema."""
    if isinstance(value, Mapping):
        own = [ref] if isinstance(ref := value.get("$ref"), str) else []
        return own + [ref for inner in value.values() for ref in _refs(inner)]
    return [ref for inner in value for ref in _refs(inner)] if isinstance(value, list) else []


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not valid JSON")
