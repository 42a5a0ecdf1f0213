"""Decorators that register judges, selectors, engines and embedders of a script or a notebook.

A registration lasts until the program ends. The command line finds only plug-ins that an installed package
declares as entry points.
"""

import inspect
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Protocol, TypeVar, overload

from winnow.algorithms.registry import ENTRY_POINT_GROUP as SELECTOR_GROUP
from winnow.algorithms.registry import SELECTORS
from winnow.algorithms.state.plugin_registry import Registered, register
from winnow.tasks.embedding.registry import GROUP as EMBEDDER_GROUP
from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS, PROVIDERS
from winnow.tasks.engines.providers import GROUP as ENGINE_GROUP
from winnow.tasks.errors import SpecError
from winnow.tasks.judges.plugin import FunctionPairJudge, judge_factory
from winnow.tasks.judges.registry import GROUP, PAIR_GROUP
from winnow.tasks.spec.judge_tree import BUILT_IN, PAIRS

Plugin = TypeVar("Plugin", bound=Callable[..., object])
Named = TypeVar("Named", bound=Callable[..., object])


class Decorator(Protocol):
    """A decorator that registers a plug-in and returns it unchanged."""

    def __call__(self, plugin: Plugin, /) -> Plugin:
        """Register the plug-in and return it."""
        ...


@overload
def judge(plugin: Plugin, /) -> Plugin: ...
@overload
def judge(plugin: str | None = None, /) -> Decorator: ...
def judge(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a judge; a spec selects it by `judge: {type: NAME}`.

        @winnow.judge
        def short(output: str, targets: Sequence[str], *, most: int = 80) -> float:
            return float(len(output) <= most)

    A function receives an output and the targets of its example, and returns a score in [0, 1], or None if
    the output has no score. Its typed keyword parameters are keys of the spec. A class is instantiated with
    these parameters and has a method `judge`; see `winnow.tasks.judges.protocol`.

    The judge's source is part of a campaign's identity: a changed judge starts another campaign. Functions
    that the judge calls are not part of it if they are defined in a notebook or a script.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a judge of this name, if the function cannot be called with an output and
            targets, or if its source cannot be found.
    """

    def factory(found: Callable[..., object]) -> Callable[..., object]:
        if inspect.isclass(found):
            return found
        _require_parameters(found, "output", "targets")
        return judge_factory(found)

    return _decorated(plugin, "judge", GROUP, BUILT_IN, factory)


@overload
def pair_judge(plugin: Plugin, /) -> Plugin: ...
@overload
def pair_judge(plugin: str | None = None, /) -> Decorator: ...
def pair_judge(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a judge of duels; a best-duel spec selects it by `judge: {type: NAME}`.

        @winnow.pair_judge
        def shorter(a: str, b: str, targets: Sequence[str]) -> float:
            return 0.5 if len(a) == len(b) else float(len(a) < len(b))

    A function receives two answers and the targets of their example, and returns the preference for the first
    one, in [0, 1] (0.5 is a tie), or None if the pair cannot be judged. Its typed keyword parameters are
    keys of the spec. A class is instantiated with these parameters and follows the protocol
    `winnow.tasks.judges.pairwise.protocol.PairJudge`.

    The judge's source is part of a campaign's identity, as for `winnow.judge`.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a judge of duels of this name, if the function cannot be called with two
            answers and targets, or if its source cannot be found.
    """

    def factory(found: Callable[..., object]) -> Callable[..., object]:
        if inspect.isclass(found):
            return found
        _require_parameters(found, "a", "b", "targets")
        return judge_factory(found, FunctionPairJudge)

    return _decorated(plugin, "judge of duels", PAIR_GROUP, PAIRS, factory)


@overload
def selector(plugin: Plugin, /) -> Plugin: ...
@overload
def selector(plugin: str | None = None, /) -> Decorator: ...
def selector(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a selector, for `selector: {name: NAME}`, `winnow.select` and `winnow.create_selector`.

    The class has an attribute `objective` with the name of its objective. Its constructor takes that
    objective's settings and the selector's own parameters by keyword. See
    `winnow.algorithms.protocols.Selector`.

    Args:
        plugin: The decorated class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a selector of this name, or if the class's objective is unknown or its source
            cannot be found.
    """
    ours = {name for names in SELECTORS.values() for name in names}

    def factory(found: Callable[..., object]) -> Callable[..., object]:
        if (objective := getattr(found, "objective", None)) not in SELECTORS:
            raise SpecError(
                f"the attribute `objective` of a selector is one of {', '.join(SELECTORS)}, not {objective!r}"
            )
        return found

    return _decorated(plugin, "selector", SELECTOR_GROUP, ours, factory)


@overload
def engine(plugin: Plugin, /) -> Plugin: ...
@overload
def engine(plugin: str | None = None, /) -> Decorator: ...
def engine(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register an engine; a model in a spec selects it by `provider: NAME`.

    The class or function takes a `ModelRef` and an `EngineSettings`, and returns an `Engine`; see
    `winnow.tasks.engines.protocol`. The engine runs in this process, not on the machines of a cluster. Its
    stored outputs are identified by the model's `model` and `revision`, not by the engine's source. If a
    changed engine answers differently, change the model's revision.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a provider of this name, or the engine's source cannot be found.
    """
    return _decorated(plugin, "provider", ENGINE_GROUP, PROVIDERS, lambda found: found)


@overload
def embedder(plugin: Plugin, /) -> Plugin: ...
@overload
def embedder(plugin: str | None = None, /) -> Decorator: ...
def embedder(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register an embedder; a route spec selects it by `embedder: {type: NAME, params: {...}}`.

    The class or function takes the parameters by keyword, and returns an object with `dim` and
    `embed(texts)`. `embed` returns a row of `dim` numbers for each text, which does not depend on the other
    texts. See `winnow.tasks.embedding.protocol.Embedder`. The embedder's parameters and source are part of a
    campaign's identity.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has an embedder of this name, or this embedder's source cannot be found.
    """
    return _decorated(plugin, "embedder", EMBEDDER_GROUP, set(BUILT_IN_EMBEDDERS), lambda found: found)


def _decorated(
    plugin: Plugin | str | None,
    kind: str,
    group: str,
    built_in: Container[str],
    factory: Callable[[Callable[..., object]], Callable[..., object]],
) -> Plugin | Decorator:
    def decorate(found: Named) -> Named:
        if not (inspect.isfunction(found) or inspect.isclass(found)) or inspect.iscoroutinefunction(found):
            article = "an" if kind == "embedder" else "a"
            raise SpecError(
                f"{article} {kind} must be a plain function or a class, not {found!r}; wrap it in a function"
            )
        name = plugin if isinstance(plugin, str) else found.__name__
        if name in built_in:
            raise SpecError(f"{name!r} is Winnow's own {kind}; choose another name")
        value = f"{found.__module__}:{found.__name__}"
        register(Registered(name, group, factory(found), value=value, source=_source(found, name)))
        return found

    return decorate if plugin is None or isinstance(plugin, str) else decorate(plugin)


def _require_parameters(function: Callable[..., object], *names: str) -> None:
    """Refuse a function that cannot be called with these positional arguments alone."""
    signature = inspect.signature(function)
    keywords = [each.name for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY]
    try:
        signature.bind(*names, **dict.fromkeys(keywords))
    except TypeError as error:
        raise SpecError(
            f"{function.__name__}{signature} cannot be called as {function.__name__}({', '.join(names)}) "
            f"({error}); put further parameters after a *, as in ({', '.join(names)}, *, most: int = 80)"
        ) from None


def _source(plugin: Callable[..., object], name: str) -> str:
    # In a notebook, `inspect` finds the source of methods, but not of their class.
    methods = [each for each in vars(plugin).values() if inspect.isfunction(each)]
    for parts in ([plugin], methods):
        with suppress(OSError, TypeError):
            if text := "".join(inspect.getsource(each) for each in parts):
                return text
    if inspect.isclass(plugin):
        remedy = "define the class in a file, or add a method, whose source can be found in a notebook"
    else:
        remedy = "define the function in a file or a notebook cell"
    raise SpecError(f"the source of {name!r} cannot be found, but is needed to detect changes; {remedy}")
