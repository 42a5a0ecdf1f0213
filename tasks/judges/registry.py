"""Judges by name; a judge's module is imported only when that judge is requested.

There is one catalogue for judges of outputs and one for judges of pairs. Other packages add judges through
the entry point groups `winnow.judges` and `winnow.pair_judges`. Each entry is a callable with typed keyword
parameters that returns a judge. A built-in judge cannot be replaced, and judges of outputs cannot use the
parameter names `extract` and `no_answer`.

The annotations of a judge's parameters define what a spec may contain, and the first line of its docstring is
its summary. All verdicts of a campaign must come from the same code. So a built-in judge has a version, which
is increased when a verdict changes; a table of verdicts in the tests enforces this. A judge of another
package is identified by its source files.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any, Literal, TypeVar, get_args, get_origin

import regex
from pydantic import ConfigDict, TypeAdapter, ValidationError

from winnow.algorithms.state.plugin_registry import Registered, in_words, object_at, plugins
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.tasks.errors import JudgeError, WinnowError, unknown_name
from winnow.tasks.judges.options import EXTRACT_VERSION, NO_ANSWER_VERSION, NoAnswer, WithOptions
from winnow.tasks.judges.protocol import BEST_OF, Duel, Judge, Sample, Scale
from winnow.tasks.judges.target_forms import use_of
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed, calling, parameters_of
from winnow.tasks.plugins.extras import installed_versions
from winnow.tasks.plugins.source_code import code_digests
from winnow.tasks.spec.judge_tree import BUILT_IN, HUMAN, PAIRS, Maker
from winnow.tasks.spec.value_errors import demand, remedy
from winnow.tasks.text.patterns import compiled

_EXAMPLES = {
    "judges": "[{type: exact}, {type: contains}]",
    "levels": "{bad: 0, good: 1}",
    "model": "{name: grader, provider: openai, model: MODEL}",
    "models": "[{name: grader, provider: openai, model: MODEL}]",
    "path": "judge.py",
    "pattern": "'^(yes|no)$'",
    "question": '"Is the answer right?"',
    "rubric": '"The answer names the right category."',
    "schema": "{type: object}",
    "scorer": "{type: normalised}",
    "weights": "[1, 2]",
}
"""Example values of required parameters for messages, by parameter name."""

Factory = Callable[..., Any]
"""Creates a judge from its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeParameter:
    """One parameter of a judge."""

    name: str
    """Key of the parameter in the spec."""
    accepts: str
    """Type of the parameter, as written in Python."""
    default: object
    """Default value; None as well if the parameter is required."""
    required: bool
    """Whether the parameter must be set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDescription:
    """Description of a judge for `winnow judges`."""

    name: str
    """The judge's `type` in the spec."""
    summary: str
    """One line on what the judge does."""
    parameters: tuple[JudgeParameter, ...]
    """Parameters: the judge's own first, then those common to all judges of the catalogue."""
    scale: Scale | None
    """Scale on which the judge measures; None if the judge defines no scale."""


class Catalogue:
    """Judges by name, including those that installed packages add to an entry point group.

    Args:
        kind: The word for an entry in messages.
        group: The entry point group. An entry cannot replace a built-in judge.
        built_in: The factory of each built-in judge, by name.
        guard: Import path of the wrapper whose exceptions name a plug-in's judge.
        common: Parameters of every judge, which the caller removes before it calls `create`.
        elsewhere: Returns the message for a name that only another catalogue has, or None.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        built_in: Mapping[str, Maker],
        guard: str,
        common: Sequence[JudgeParameter] = (),
        elsewhere: Callable[[str], str | None] = lambda name: None,
    ) -> None:
        self._kind = kind
        self._group = group
        self._built_in = built_in
        self._guard = guard
        self._common = tuple(common)
        self._elsewhere = elsewhere

    def names(self) -> tuple[str, ...]:
        """Names of all judges, built in and installed, sorted; imports no judge."""
        return tuple(sorted({*self._built_in, *self._installed()}))

    def describe(self, name: str) -> JudgeDescription:
        """Summary and parameters of a judge.

        Raises:
            JudgeError: If the judge does not exist or cannot be imported.
        """
        factory = self._factory(name)
        summary = (inspect.getdoc(factory) or "").partition("\n")[0]
        scale = getattr(factory, "scale", None)
        return JudgeDescription(
            name=name,
            summary=summary,
            parameters=(*_parameters(factory), *self._common),
            scale=scale if isinstance(scale, Scale) else None,
        )

    def code(self, name: str, params: JsonView) -> JsonObject:
        """Identity of a judge's code: its version, or digests of a plug-in's files.

        The values are JSON. If parameters of a built-in judge name other code, its method `code` identifies
        that code. If it uses libraries, `libraries` names their distributions, and their versions are part of
        its identity.

        Raises:
            JudgeError: If the judge does not exist, or its code cannot be found.
        """
        factory = self._factory(name)
        if maker := self._built_in.get(name):
            return {
                "version": maker.version,
                **(
                    {"libraries": installed_versions(factory.libraries)}
                    if hasattr(factory, "libraries")
                    else {}
                ),
                **(factory.code(**params) if hasattr(factory, "code") else {}),
            }
        return {"files": code_digests(self._installed()[name])}

    def create(self, name: str, params: JsonView) -> Any:  # noqa: ANN401 -- what a factory builds
        """Create the judge of this name with its own parameters.

        Raises:
            JudgeError: If the name, a parameter or a value is invalid.
        """
        factory = self._factory(name)
        values = self._checked(name, factory, params)
        try:
            if name in self._built_in:
                return factory(**values)
            plugin = self._plugin(name)
            with calling(plugin, TypeError, ValueError, WinnowError):
                made = factory(**values)
            return object_at(self._guard)(plugin, made)
        except PluginFailed as failed:
            raise JudgeError(str(failed), "judge.type") from None
        except (TypeError, ValueError) as error:
            raise JudgeError(f"{name}: {in_words(error).partition(': ')[2]}", "judge") from error

    def _plugin(self, name: str) -> Plugin:
        return Plugin(kind=self._kind, name=name, location=self._installed()[name].value)

    def _meant(self, name: str) -> str | None:
        """Winnow's name of a judge that other tools call `name`; None if this catalogue lacks it."""
        found = ALSO_CALLED.get(name.casefold().replace("-", "_"))
        return found if found in self.names() else None

    def _installed(self) -> dict[str, EntryPoint]:
        return plugins(self._group)

    def _factory(self, name: str) -> Factory:
        if maker := self._built_in.get(name):
            factory: Factory = maker.load()
            return factory
        entry = self._installed().get(name)
        if entry is None:
            sentence = self._elsewhere(name) or unknown_name(
                self._kind, name, self.names(), command="winnow judges", meant=self._meant(name)
            )
            raise JudgeError(sentence, "judge.type")
        try:
            loaded: Factory = entry.load()
            _signature(loaded)
        except (Exception, SystemExit) as error:  # a third-party module can fail in any way
            raise JudgeError(
                f"the installed {self._kind} {name!r} ({entry.value}) cannot be used: {in_words(error)}",
                "judge.type",
            ) from error
        return loaded

    def _checked(self, name: str, factory: Factory, params: JsonView) -> JsonObject:
        known = _signature(factory)
        for key in params:
            if key not in known:
                names = (*known, *(parameter.name for parameter in self._common))
                raise JudgeError(unknown_name(f"parameter of {name}", key, names), f"judge.{key}")
        for key, (hint, default) in known.items():
            if default is inspect.Parameter.empty and key not in params:
                raise JudgeError(
                    f"{name} needs {key}; {self._remedy(name, factory, key, hint)}",
                    f"judge.{key}",
                )
        return {key: checked(key, known[key][0], value) for key, value in params.items()}

    def _remedy(self, name: str, factory: Factory, key: str, hint: object) -> str:
        """What to do about a missing parameter; a function may take it for the output to judge."""
        entry = self._installed().get(name)
        if entry is None or isinstance(entry, Registered) or not inspect.isfunction(factory):
            return f"add {_written(key, hint)}"
        return (
            f"add it; or if {entry.value} is a function that judges outputs, change the entry point to a "
            "class or function that creates a judge, because only @winnow.judge accepts functions that judge"
        )


def checked(name: str, hint: Any, value: object) -> Any:  # noqa: ANN401 -- any type and its values
    """Return the value if it has the type; nothing is converted.

    Raises:
        JudgeError: If it has another type; names the position in the parameter, the type and the value.
    """
    try:
        config = ConfigDict(strict=True, arbitrary_types_allowed=True)
        return TypeAdapter(hint, config=config).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = name + "".join(f"[{part}]" for part in first["loc"] if isinstance(part, int))
        given = first["input"]
        raise JudgeError(f"{demand(first)}, got {given!r}{remedy(first, place)}", f"judge.{place}") from error


def _written(key: str, hint: object) -> str:
    """A required parameter as in YAML, with its choices, an example value or its type."""
    if get_origin(hint) is Literal:
        return f"{key}, one of: {', '.join(map(str, get_args(hint)))}"
    example = _EXAMPLES.get(key)
    return f"it, for example {key}: {example}" if example else f"it ({_spelled(hint)})"


def _signature(factory: Factory) -> Mapping[str, tuple[Any, object]]:
    """Type and default of each named parameter; `inspect.Parameter.empty` if it has no default."""
    return {
        each.name: (each.annotation, each.default)
        for each in parameters_of(factory)
        if each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }


def _parameters(factory: Factory) -> tuple[JudgeParameter, ...]:
    return tuple(
        JudgeParameter(
            name=name,
            accepts=_spelled(hint),
            default=None if default is inspect.Parameter.empty else default,
            required=default is inspect.Parameter.empty,
        )
        for name, (hint, default) in _signature(factory).items()
    )


def _spelled(hint: Any) -> str:  # noqa: ANN401 -- any type
    plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint  # Annotated[float, ...] is a float
    return inspect.formatannotation(plain).replace("collections.abc.", "")


ALSO_CALLED = {
    "accuracy": "exact",
    "equals": "exact",
    "match": "exact",
    "em": "exact_match",
    "icontains": "contains",
    "includes": "contains",
    "llm_rubric": "llm",
    "model_graded": "llm",
    "embedding": "similarity",
    "javascript": "python",
    "pass_at_k": "code",
}
"""Built-in judges by the names that other tools use for them, with underscores."""

GROUP = "winnow.judges"
PAIR_GROUP = "winnow.pair_judges"
EXTRACT = "extract"
NO_ANSWER = "no_answer"


def _of_pairs() -> str:
    """Names of the objectives that compare pairs, joined by "or"."""
    return " or ".join(name for name in OBJECTIVES if traits_of(name).compares_pairs)


def _is_of_pairs(name: str) -> str | None:
    if name in BUILT_IN or name not in PAIRS:
        return None
    return (
        f"{name} judges pairs of outputs, for objective {_of_pairs()}; choose a judge of single outputs, "
        f"such as normalised, or set objective: {_of_pairs()}"
    )


def _is_of_outputs(name: str) -> str | None:
    if name in PAIRS or name not in BUILT_IN:
        return None
    return (
        f"{name} judges single outputs, and objective {_of_pairs()} compares pairs; write "
        f"judge: {{type: rules, scorer: {{type: {name}}}}}"
    )


_CATALOGUE = Catalogue(
    "judge",
    group=GROUP,
    guard="winnow.tasks.judges.plugin:PluginJudge",
    built_in=BUILT_IN,
    common=(
        JudgeParameter(name=EXTRACT, accepts="str | None", default=None, required=False),
        JudgeParameter(name=NO_ANSWER, accepts="'wrong' | 'unscored'", default="wrong", required=False),
    ),
    elsewhere=_is_of_pairs,
)
_PAIR_CATALOGUE = Catalogue(
    "pair judge",
    group=PAIR_GROUP,
    guard="winnow.tasks.judges.plugin:PluginPairJudge",
    built_in=PAIRS,
    elsewhere=_is_of_outputs,
)


def judge_names() -> tuple[str, ...]:
    """Names of all judges of outputs, built in and installed, sorted; imports no judge."""
    return _CATALOGUE.names()


def describe(name: str) -> JudgeDescription:
    """Summary and parameters of a judge; `extract` and `no_answer` last, if it accepts them.

    Raises:
        JudgeError: If the judge does not exist or cannot be imported.
    """
    described = _CATALOGUE.describe(name)
    if name != HUMAN:
        return described
    own = [each for each in described.parameters if each.name not in (EXTRACT, NO_ANSWER)]
    return replace(described, parameters=tuple(own))


def judge_code(type: str, /, **params: object) -> JsonObject:
    """Identity of the code on which verdicts of a judge with these parameters depend.

    The values are JSON.

    Raises:
        JudgeError: If the judge does not exist or cannot be imported.
    """
    options = {NO_ANSWER: NO_ANSWER_VERSION}
    if params.get(EXTRACT) is not None:
        options[EXTRACT] = EXTRACT_VERSION
    own = {name: value for name, value in params.items() if name not in (EXTRACT, NO_ANSWER)}
    return {**_CATALOGUE.code(type, own), "options": options}


def create_judge(type: str, /, **params: object) -> Judge[Sample]:
    """Create a judge of outputs.

    Args:
        type: One of `judge_names()`.
        params: The parameters that `describe(type)` lists. `extract` is a regular expression; its last match
            in the output (group 1, if the pattern has one) is judged instead of the output. `no_answer` sets
            whether an output without an answer is "wrong", with the score 0, or "unscored".

    Raises:
        JudgeError: If the name, a parameter or a value is invalid.
    """
    if type == HUMAN:
        return _human_judge(params)
    pattern = checked(EXTRACT, str | None, params.pop(EXTRACT, None))
    no_answer = checked(NO_ANSWER, NoAnswer, params.pop(NO_ANSWER, "wrong"))
    judge: Judge[Sample] = _CATALOGUE.create(type, params)
    return WithOptions(
        inner=judge,
        pattern=None if pattern is None else _extractor(pattern),
        forms=use_of(type, params),
        no_answer=no_answer,
    )


def _human_judge(params: JsonObject) -> Judge[Sample]:
    for option in (EXTRACT, NO_ANSWER):
        if option in params:
            raise JudgeError(f"annotators judge whole outputs; remove {option}", f"judge.{option}")
    judge: Judge[Sample] = _CATALOGUE.create(HUMAN, params)
    return judge


def _extractor(pattern: str) -> regex.Pattern[str]:
    try:
        return compiled(pattern)
    except ValueError as error:
        raise JudgeError(str(error), f"judge.{EXTRACT}") from error


def pair_judge_names() -> tuple[str, ...]:
    """Names of all pair judges, built in and installed, sorted; imports no judge."""
    return _PAIR_CATALOGUE.names()


def describe_pair_judge(name: str) -> JudgeDescription:
    """Summary and parameters of a pair judge.

    Raises:
        JudgeError: If the judge does not exist or cannot be imported.
    """
    return _PAIR_CATALOGUE.describe(name)


def pair_judge_code(type: str, /) -> JsonObject:
    """Identity of the code on which a pair judge's verdicts depend, as JSON values.

    Raises:
        JudgeError: If the judge does not exist or cannot be imported.
    """
    return _PAIR_CATALOGUE.code(type, {})


def create_pair_judge(type: str, /, **params: object) -> Judge[Duel]:
    """Create a pair judge.

    Args:
        type: One of `pair_judge_names()`.
        params: The parameters that `describe_pair_judge(type)` lists.

    Raises:
        SpecError: If the name, a parameter or a value is invalid, or a file that a value names.
    """
    judge: Judge[Duel] = _PAIR_CATALOGUE.create(type, params)
    return judge


Made = TypeVar("Made")


def within(given: Mapping[str, object], place: str, make: Callable[..., Made]) -> Made:
    """Apply `create_judge` or `judge_code` to a judge nested in another judge.

    `place` is the nested judge's key, which errors name.

    Raises:
        JudgeError: If the nested judge's name or parameters are invalid.
    """
    params = dict(given)
    name = params.pop("type", None)
    if not isinstance(name, str):
        raise JudgeError(f"must name a judge: one of {', '.join(judge_names())}", f"{place}.type")
    if name == BEST_OF:
        sentence = (
            f"{BEST_OF} chooses among the outputs of a pair, which a nested judge does not receive; make it "
            "the campaign's judge, and combine judges inside it"
        )
        raise JudgeError(sentence, f"{place}.type")
    try:
        return make(name, **params)
    except JudgeError as error:
        raise JudgeError(error.message, (error.path or "judge").replace("judge", place, 1)) from error
