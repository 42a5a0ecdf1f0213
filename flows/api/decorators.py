"""Decorators that register judges, selectors, engines and embedders of a script or a notebook.

They are valid while the program runs: the command line only finds plug-ins with a package's entry point.
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
        """Return the plug-in itself."""
        ...


@overload
def judge(plugin: Plugin, /) -> Plugin: ...
@overload
def judge(plugin: str | None = None, /) -> Decorator: ...
def judge(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a judge, which a spec selects by `judge: {type: NAME}`.

        @winnow.judge
        def short(output: str, targets: Sequence[str], *, most: int = 80) -> float:
            return float(len(output) <= most)

    A function receives an output and the targets of its example, and returns a score in [0, 1], or None if
    the output has no score; its typed keyword parameters are keys of the spec. A class is created with its
    parameters and has a method `judge`; see `winnow.tasks.judges.protocol`.

    Its source is part of a campaign's identity: changing it starts another campaign. Functions that it calls
    are not included if they are defined in a notebook or a script.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a judge of this name, the function has other parameters, or its source cannot
            be found.
    """

    def factory(found: Callable[..., object]) -> Callable[..., object]:
        if inspect.isclass(found):
            return found
        _require_taken(found, "output", "targets")
        return judge_factory(found)

    return _decorated(plugin, "judge", GROUP, BUILT_IN, factory)


@overload
def pair_judge(plugin: Plugin, /) -> Plugin: ...
@overload
def pair_judge(plugin: str | None = None, /) -> Decorator: ...
def pair_judge(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a judge of duels, which a best-duel spec selects by `judge: {type: NAME}`.

        @winnow.pair_judge
        def shorter(a: str, b: str, targets: Sequence[str]) -> float:
            return 0.5 if len(a) == len(b) else float(len(a) < len(b))

    A function receives two answers and the targets of their example, and returns the preference for the first
    one, in [0, 1] (0.5 is a tie), or None if the pair has no preference; its typed keyword parameters are
    keys of the spec. A class is created with its parameters and is a
    `winnow.tasks.judges.pairwise.protocol.PairJudge`.

    Its source is part of a campaign's identity, like that of a `judge`.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a judge of duels of this name, the function has other parameters, or its
            source cannot be found.
    """

    def factory(found: Callable[..., object]) -> Callable[..., object]:
        if inspect.isclass(found):
            return found
        _require_taken(found, "a", "b", "targets")
        return judge_factory(found, FunctionPairJudge)

    return _decorated(plugin, "judge of duels", PAIR_GROUP, PAIRS, factory)


@overload
def selector(plugin: Plugin, /) -> Plugin: ...
@overload
def selector(plugin: str | None = None, /) -> Decorator: ...
def selector(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register a selector, for `selector: {name: NAME}`, `winnow.select` and `winnow.create_selector`.

    A class like Winnow's: its attribute `objective` names its objective, and its constructor takes that
    objective's setting and its own parameters by keyword; see `winnow.algorithms.protocols.Selector`.

    Args:
        plugin: The decorated class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a selector of this name, its objective is unknown, or its source cannot be
            found.
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
    """Register an engine, which a spec selects by a model's `provider: NAME`.

    A class or function that takes a `ModelRef` and an `EngineSettings`, and creates an `Engine`; see
    `winnow.tasks.engines.protocol`. It runs in this process, not on the machines of a cluster. Its outputs
    are identified by the model's `model` and `revision`, not by the engine's source: choose another revision
    if it would answer differently.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has a provider of this name, or the source of this one cannot be found.
    """
    return _decorated(plugin, "provider", ENGINE_GROUP, PROVIDERS, lambda found: found)


@overload
def embedder(plugin: Plugin, /) -> Plugin: ...
@overload
def embedder(plugin: str | None = None, /) -> Decorator: ...
def embedder(plugin: Plugin | str | None = None, /) -> Plugin | Decorator:
    """Register an embedder, which a route spec selects by `embedder: {type: NAME, params: {...}}`.

    A class or function that takes the parameters by keyword, and creates an object with `dim` and
    `embed(texts)`, which returns a row of `dim` numbers for each text, independent of the other texts; see
    `winnow.tasks.embedding.protocol.Embedder`. Its parameters and its source are part of a campaign's
    identity.

    Args:
        plugin: The decorated function or class, or the name to register instead of its own.

    Raises:
        SpecError: If Winnow has an embedder of this name, or the source of this one cannot be found.
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
                f"{article} {kind} is a plain function or a class, not {found!r}; write one that calls it"
            )
        name = plugin if isinstance(plugin, str) else found.__name__
        if name in built_in:
            raise SpecError(f"{name!r} is Winnow's own {kind}; choose another name")
        value = f"{found.__module__}:{found.__name__}"
        register(Registered(name, group, factory(found), value=value, source=_source(found, name)))
        return found

    return decorate if plugin is None or isinstance(plugin, str) else decorate(plugin)


def _require_taken(function: Callable[..., object], *given: str) -> None:
    """Refuse, before anything is generated, a function that does not accept these positional arguments."""
    signature = inspect.signature(function)
    keywords = [each.name for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY]
    try:
        signature.bind(*given, **dict.fromkeys(keywords))
    except TypeError as error:
        raise SpecError(
            f"{function.__name__}{signature} cannot be called as {function.__name__}({', '.join(given)}) "
            f"({error}); parameters of its own come after a *, as in ({', '.join(given)}, *, most: int = 80)"
        ) from None


def _source(plugin: Callable[..., object], name: str) -> str:
    # Python finds no class of a notebook, but its methods.
    parts = [each for each in vars(plugin).values() if inspect.isfunction(each)]
    for asked in ([plugin], parts):
        with suppress(OSError, TypeError):
            if text := "".join(inspect.getsource(each) for each in asked):
                return text
    if inspect.isclass(plugin):
        remedy = "write it into a file, or give it a method, whose source Python can find in a notebook"
    else:
        remedy = "write it into a file or a cell of a notebook"
    raise SpecError(
        f"the source of {name!r} cannot be found, so changes of it could not be detected; {remedy}"
    )
