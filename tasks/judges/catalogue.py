"""A catalogue of judges: names, where each is built, and how its parameters are checked.

A judge is built by a callable whose keyword parameters are typed: their annotations say what a spec may
hold, and the first line of its docstring says what it does. A judge's module is imported when that judge
is asked for, not before.

A campaign's verdicts must all come from one and the same judge. So a built-in judge has a version, which is
raised when a verdict changes: a table of verdicts in the tests sees to that. A judge of another package is
known by its source files.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Literal, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError

from winnow.algorithms.state.plugin_registry import Registered, in_words, plugins
from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.errors import JudgeError, WinnowError, unknown_name
from winnow.tasks.judges.isolated.libraries import versions
from winnow.tasks.judges.protocol import Scale
from winnow.tasks.plugins.entry_points import Plugin, PluginFailed, calling, parameters_of
from winnow.tasks.plugins.source_code import code_digests
from winnow.tasks.spec.judge_tree import Maker
from winnow.tasks.spec.value_errors import demand, remedy

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
"""Values of parameters that judges need, by name."""

Factory = Callable[..., Any]
"""Makes a judge of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeParameter:
    """One parameter of a judge."""

    name: str
    """Its key in the spec."""
    accepts: str
    """Its type, as in Python."""
    default: object
    """Its value when it is not given; None as well when it is required."""
    required: bool
    """Whether it must be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDescription:
    """A judge as described to a user who has to choose one."""

    name: str
    """Its `type` in the spec."""
    summary: str
    """One line that says what the judge does."""
    parameters: tuple[JudgeParameter, ...]
    """Its parameters: those of its own first, then those that every judge of the catalogue takes."""
    scale: Scale | None
    """The scale that it measures on; None where it names none."""


class Catalogue:
    """Judges by name; those of installed packages come through an entry point group.

    Args:
        kind: The word for an entry in messages.
        group: The entry point group. An entry cannot replace a built-in judge.
        built_in: What makes each judge, by name.
        guard: Makes a plug-in's judge one whose exceptions name it.
        common: Parameters of every judge, which the caller takes off before it calls `create`.
        elsewhere: Returns the sentence for a name that only another catalogue has, or None.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        built_in: Mapping[str, Maker],
        guard: Callable[[Plugin, Any], object],
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
        """Every judge there is, built in and installed, in alphabetical order; none is imported."""
        return tuple(sorted({*self._built_in, *self._installed()}))

    def describe(self, name: str) -> JudgeDescription:
        """A judge's summary and parameters.

        Raises:
            JudgeError: If there is no such judge or it cannot be imported.
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
        """The code of a judge, as JSON values: its version, or the digests of a plug-in's files.

        A built-in judge may run other code that its parameters name: its method `code` then says which. Where
        it rests on libraries, `libraries` names their distributions, and their versions are part of its code.

        Raises:
            JudgeError: If there is no such judge, or it or code that it runs cannot be found.
        """
        factory = self._factory(name)
        if maker := self._built_in.get(name):
            return {
                "version": maker.version,
                **({"libraries": versions(factory.libraries)} if hasattr(factory, "libraries") else {}),
                **(factory.code(**params) if hasattr(factory, "code") else {}),
            }
        return {"files": code_digests(self._installed()[name])}

    def create(self, name: str, params: JsonView) -> Any:  # noqa: ANN401 -- what a factory builds
        """The judge of this name with these parameters of its own.

        Raises:
            JudgeError: If the name, a parameter or a value is not one that is accepted.
        """
        factory = self._factory(name)
        values = self._checked(name, factory, params)
        try:
            if name in self._built_in:
                return factory(**values)
            plugin = self._plugin(name)
            with calling(plugin, TypeError, ValueError, WinnowError):
                made = factory(**values)
            return self._guard(plugin, made)
        except PluginFailed as failed:
            raise JudgeError(str(failed), "judge.type") from None
        except (TypeError, ValueError) as error:
            raise JudgeError(f"{name}: {in_words(error).partition(': ')[2]}", "judge") from error

    def _plugin(self, name: str) -> Plugin:
        return Plugin(kind=self._kind, name=name, location=self._installed()[name].value)

    def _installed(self) -> dict[str, EntryPoint]:
        return plugins(self._group)

    def _factory(self, name: str) -> Factory:
        if maker := self._built_in.get(name):
            factory: Factory = maker.load()
            return factory
        entry = self._installed().get(name)
        if entry is None:
            sentence = self._elsewhere(name) or unknown_name(self._kind, name, self.names())
            raise JudgeError(sentence, "judge.type")
        try:
            loaded: Factory = entry.load()
            _signature(loaded)
        except (Exception, SystemExit) as error:  # another's module can fail in any way
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
        """The remedy for a missing parameter, which may be the output that a function is to judge."""
        entry = self._installed().get(name)
        if entry is None or isinstance(entry, Registered) or not inspect.isfunction(factory):
            return f"add {_written(key, hint)}"
        return (
            f"add it, or where {entry.value} is a function that judges, have the entry point name a class or "
            "a function that makes a judge: functions that judge are for @winnow.judge"
        )


def checked(name: str, hint: Any, value: object) -> Any:  # noqa: ANN401 -- any type and its values
    """The value, if it is of the type; nothing is converted.

    Raises:
        JudgeError: Naming the place within the parameter, what it must be and what it is.
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
    """A required parameter with its choices, a typical value or its type."""
    if get_origin(hint) is Literal:
        return f"{key}, one of: {', '.join(map(str, get_args(hint)))}"
    example = _EXAMPLES.get(key)
    return f"it, for example {key}: {example}" if example else f"it ({_spelled(hint)})"


def _signature(factory: Factory) -> Mapping[str, tuple[Any, object]]:
    """Type and default (`inspect.Parameter.empty` where there is none) of each parameter that has a name."""
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
