"""Judges by name. A judge's module is imported when that judge is asked for, not before.

A package adds judges through the entry point group `winnow.judges`: each entry is a callable whose keyword
parameters are typed and which returns a `Judge`. A built-in judge cannot be replaced, and the parameter
name `extract` is the registry's own.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import regex
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tasks.errors import JudgeError
from tasks.judges.extraction import ExtractingJudge
from tasks.judges.patterns import compiled
from tasks.judges.protocol import Judge
from tasks.judges.strictness import NoAnswer, StrictJudge
from tasks.suggestions import unknown_name

GROUP = "winnow.judges"
EXTRACT = "extract"
NO_ANSWER = "no_answer"

_BUILT_IN = {
    "choice": "tasks.judges.choice:ChoiceJudge",
    "contains": "tasks.judges.contains:ContainsJudge",
    "exact": "tasks.judges.exact:ExactJudge",
    "normalised": "tasks.judges.normalised:NormalisedJudge",
    "numeric": "tasks.judges.numeric:NumericJudge",
    "regex": "tasks.judges.regex:RegexJudge",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeParameter:
    """One parameter of a judge."""

    name: str
    """Its key in the spec."""
    accepts: str
    """Its type, as in Python."""
    default: Any
    """Its value when it is not given; None as well when it is required."""
    required: bool
    """Whether it must be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDescription:
    """What a user needs to know to choose a judge."""

    name: str
    """Its `type` in the spec."""
    summary: str
    """When its score is one, in one line."""
    parameters: tuple[JudgeParameter, ...]
    """Its parameters, those of its own first, then `extract` and `no_answer`."""


def judge_names() -> tuple[str, ...]:
    """Every judge there is, built in and installed, in alphabetical order; none is imported."""
    return tuple(sorted({*_BUILT_IN, *_installed()}))


def describe(name: str) -> JudgeDescription:
    """A judge's summary and parameters.

    Raises:
        JudgeError: If there is no such judge or it cannot be imported.
    """
    factory = _factory(name)
    summary = (inspect.getdoc(factory) or "").partition("\n")[0]
    return JudgeDescription(
        name=name, summary=summary, parameters=(*_parameters(factory), *_COMMON_PARAMETERS)
    )


def create_judge(type: str, /, **params: Any) -> Judge:  # noqa: ANN401
    """The judge of this name with these parameters.

    Args:
        type: One of `judge_names()`.
        params: What `describe(type)` lists. `extract` is a regular expression whose last match in the
            output is judged in place of the output (group 1 if it has one). `no_answer` says whether an
            output without a readable answer is "unscored" or "wrong".

    Raises:
        JudgeError: If the name, a parameter or a value is not one that is accepted.
    """
    factory = _factory(type)
    pattern = _checked(EXTRACT, str | None, params.pop(EXTRACT, None))
    no_answer = _checked(NO_ANSWER, NoAnswer, params.pop(NO_ANSWER, "unscored"))
    values = _checked_parameters(type, factory, params)
    try:
        judge: Judge = factory(**values)
    except (TypeError, ValueError) as error:
        raise JudgeError(f"{type}: {error}", "judge") from error
    if pattern is not None:
        judge = ExtractingJudge(pattern=_extractor(pattern), inner=judge)
    return judge if no_answer == "unscored" else StrictJudge(inner=judge)


def _extractor(pattern: str) -> regex.Pattern[str]:
    try:
        return compiled(pattern)
    except ValueError as error:
        raise JudgeError(str(error), f"judge.{EXTRACT}") from error


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _factory(name: str) -> Callable[..., Judge]:
    if location := _BUILT_IN.get(name):
        module, _, attribute = location.partition(":")
        factory: Callable[..., Judge] = getattr(import_module(module), attribute)
        return factory
    entry = _installed().get(name)
    if entry is None:
        raise JudgeError(unknown_name("judge", name, judge_names()), "judge.type")
    try:
        loaded: Callable[..., Judge] = entry.load()
    except Exception as error:  # another's module can fail in any way
        raise JudgeError(
            f"the installed judge {name!r} ({entry.value}) cannot be imported: {error!r}", "judge.type"
        ) from error
    return loaded


def _signature(factory: Callable[..., Judge]) -> Mapping[str, tuple[Any, Any]]:
    """Type and default (`inspect.Parameter.empty` where there is none) of each parameter."""
    return {
        name: (parameter.annotation, parameter.default)
        for name, parameter in inspect.signature(factory, eval_str=True).parameters.items()
    }


def _parameters(factory: Callable[..., Judge]) -> tuple[JudgeParameter, ...]:
    return tuple(
        JudgeParameter(
            name=name,
            accepts=_spelled(hint),
            default=None if default is inspect.Parameter.empty else default,
            required=default is inspect.Parameter.empty,
        )
        for name, (hint, default) in _signature(factory).items()
    )


def _checked_parameters(
    type: str, factory: Callable[..., Judge], params: Mapping[str, Any]
) -> dict[str, Any]:
    known = _signature(factory)
    for name in params:
        if name not in known:
            sentence = unknown_name(f"parameter of {type}", name, (*known, EXTRACT, NO_ANSWER))
            raise JudgeError(sentence, f"judge.{name}")
    for name, (hint, default) in known.items():
        if default is inspect.Parameter.empty and name not in params:
            raise JudgeError(f"{type} needs {name} ({_spelled(hint)}); add it", f"judge.{name}")
    return {name: _checked(name, known[name][0], value) for name, value in params.items()}


def _checked(name: str, hint: Any, value: Any) -> Any:  # noqa: ANN401
    try:
        return TypeAdapter(hint, config=ConfigDict(strict=True)).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = name + "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
        sentence = first["msg"].replace("Input should", "must", 1)
        raise JudgeError(f"{sentence}, got {first['input']!r}", f"judge.{place}") from error


def _spelled(hint: Any) -> str:  # noqa: ANN401
    plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint  # Annotated[float, ...] is a float
    return inspect.formatannotation(plain).replace("collections.abc.", "")


_COMMON_PARAMETERS = (
    JudgeParameter(name=EXTRACT, accepts="str | None", default=None, required=False),
    JudgeParameter(name=NO_ANSWER, accepts="'unscored' | 'wrong'", default="unscored", required=False),
)
