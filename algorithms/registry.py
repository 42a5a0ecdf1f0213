"""Selectors by name, built-in and third-party.

A selector's module is imported when it is first needed. A third party adds a selector by an entry point in
the group `winnow.selectors`. The entry point has the selector's name; its object is a class like the built-in
ones, with an attribute `objective` and a constructor that takes the config of that objective, then its own
parameters by keyword. Names of built-in selectors cannot be overridden. A program registers its own selector
by `winnow.selector`.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import EntryPoint
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from winnow.algorithms.errors import (
    AlgorithmError,
    InvalidParameter,
    SelectorNotLoadable,
    UnknownParameter,
    UnknownSelector,
)
from winnow.algorithms.protocols import Selector
from winnow.algorithms.state.plugin_registry import in_words, object_at, plugins

ENTRY_POINT_GROUP = "winnow.selectors"

SETTINGS = {
    "best-mean": "winnow.algorithms.best_mean.config:BestMeanConfig",
    "best-duel": "winnow.algorithms.best_duel.config:BestDuelConfig",
    "certify": "winnow.algorithms.certify.config:CertifyConfig",
    "route": "winnow.algorithms.route.config:RouteConfig",
}
"""Import paths of the config classes by objective.
A config has the sizes and the common parameters."""

SELECTORS = {
    "best-mean": {
        "champion": "winnow.algorithms.champion.selector:Champion",
        "filled-subset": "winnow.algorithms.papers.best_mean.baselines:FilledSubset",
        "gate": "winnow.algorithms.gate:Gate",
        "halving": "winnow.algorithms.best_mean.baselines.halving:Halving",
        "lrf": "winnow.algorithms.papers.best_mean.baselines:Lrf",
        "naive-pooling": "winnow.algorithms.papers.best_mean.pulse:NaivePooling",
        "pulse": "winnow.algorithms.papers.best_mean.pulse:Pulse",
        "race": "winnow.algorithms.champion.selector:RaceOnly",
        "row-mean": "winnow.algorithms.best_mean.baselines.row_mean:RowMean",
        "ucb-e": "winnow.algorithms.papers.best_mean.ucb_e:UcbE",
        "ucb-e-lrf": "winnow.algorithms.papers.best_mean.ucb_e:UcbELrf",
        "ucb-e-lrf-score-only": "winnow.algorithms.papers.best_mean.ucb_e:UcbELrfScoreOnly",
    },
    "best-duel": {
        "eps-greedy": "winnow.algorithms.papers.best_duel_baselines:EpsGreedy",
        "llm-po": "winnow.algorithms.best_duel.llm_po:LlmPo",
        "llm-po-bt": "winnow.algorithms.papers.bradley_terry.llm_po_bt:LlmPoBt",
        "random-pair": "winnow.algorithms.papers.best_duel_baselines:RandomPair",
        "round-robin": "winnow.algorithms.papers.best_duel_baselines:RoundRobin",
        "rucb": "winnow.algorithms.papers.best_duel_baselines:Rucb",
        "thompson": "winnow.algorithms.papers.best_duel_baselines:Thompson",
    },
    "certify": {
        "autoeval": "winnow.algorithms.certify.r_autoeval_plus:AutoEval",
        "eval": "winnow.algorithms.certify.r_autoeval_plus:Eval",
        "r-autoeval": "winnow.algorithms.certify.r_autoeval_plus:RAutoEval",
        "r-autoeval-plus": "winnow.algorithms.certify.r_autoeval_plus:RAutoEvalPlus",
        "r-eval": "winnow.algorithms.certify.r_autoeval_plus:REval",
    },
    "route": {
        "kernel-ucb": "winnow.algorithms.route.policies:KernelUcb",
        "lin-ucb": "winnow.algorithms.route.policies:LinUcb",
        "naive-krr": "winnow.algorithms.route.policies:NaiveKrr",
        "pak-ucb": "winnow.algorithms.route.policies:PakUcb",
        "random": "winnow.algorithms.route.policies:RandomArm",
        "rff-ucb": "winnow.algorithms.route.policies:RffUcb",
        "sup-pak-ucb": "winnow.algorithms.route.policies:SupPakUcb",
        "sup-rff-ucb": "winnow.algorithms.route.policies:SupRffUcb",
    },
}
"""Import paths of the built-in selectors' classes, by objective and name."""

BASELINES = frozenset(
    {"autoeval", "eps-greedy", "eval", "filled-subset", "kernel-ucb", "lin-ucb", "lrf", "naive-krr",
     "naive-pooling", "random", "random-pair", "round-robin", "row-mean", "rucb", "thompson"}
)  # fmt: skip
"""Baselines of the papers; lists omit them unless they are requested."""

RULES_VERSION = "1"
"""Version of the decision rules of the built-in selectors.
Increase it whenever a built-in selector changes a decision on outcomes that could have been observed
before: `winnow db check` recomputes stored decisions made by the same rules version."""

SIZES = ("n_arms", "n_examples")
TYPE_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false", NoneType: "None"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a selector."""

    name: str
    type: object
    """Type annotation."""
    default: object
    """Default value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What `winnow selectors` shows about a selector."""

    name: str
    objective: str
    summary: str
    """First line of the class's docstring."""
    source: str
    """Published source, as given in the docstring.
    Empty if the docstring names no source."""
    parameters: tuple[Parameter, ...]
    """Parameters of the selector, then those common to its objective."""


def create_selector(name: str, *, n_arms: int, n_examples: int, **params: object) -> Selector:
    """Create a selector that has observed nothing.

    Args:
        name: One of `selector_names()`.
        n_arms: K, the number of arms.
        n_examples: n, the number of examples.
        params: Values for some of `describe(name).parameters`.

    Raises:
        UnknownSelector: If no selector has this name.
        SelectorNotLoadable: If a third-party selector cannot be imported or used.
        UnknownParameter: If the selector does not have one of the parameters.
        InvalidParameter: If a value has the wrong type or is out of range.
    """
    _check_type("name", name, str)
    selector, objective = _load(name)
    config = _config(objective)
    own, common = _own_parameters(selector), _common_parameters(config)
    for size, count in zip(SIZES, (n_arms, n_examples), strict=True):
        _check_type(size, count, int)
    accepted = {parameter.name: parameter for parameter in (*own, *common)}
    for parameter, value in params.items():
        if parameter not in accepted:
            raise UnknownParameter(name, parameter, tuple(accepted))
        _check_type(parameter, value, accepted[parameter].type)
    given = {parameter.name: params.pop(parameter.name) for parameter in own if parameter.name in params}
    return selector(config(n_arms=n_arms, n_examples=n_examples, **params), **given)


def selector_names(objective: str | None = None, *, baselines: bool = True) -> list[str]:
    """Names of the selectors in alphabetical order, with or without `BASELINES`.

    Args:
        objective: Only selectors for this objective; None for all.
        baselines: Whether to include `BASELINES`.
    """
    ours = [
        name
        for key, names in SELECTORS.items()
        if objective in (None, key)
        for name in names
        if baselines or name not in BASELINES
    ]
    theirs = [name for name in _third_parties() if objective is None or _answers(name, objective)]
    return sorted(ours + theirs)


def _answers(name: str, objective: str) -> bool:
    """Whether a third-party selector is for an objective.

    False if it cannot be loaded.
    """
    try:
        return _load(name)[1] == objective
    except AlgorithmError:
        return False


def describe(name: str, wanted: str | None = None) -> Description:
    """Describe a selector and its parameters; raises like `create_selector`.

    Args:
        name: The selector's name.
        wanted: If the name is unknown, the error lists only the built-in selectors of this objective; None
            for all. It always lists third-party selectors, because their objective is known only once they
            are loaded.
    """
    selector, objective = _load(name, wanted)
    paragraphs = inspect.cleandoc(selector.__doc__ or "").split("\n\n")
    sources = [text.removeprefix("Source:") for text in paragraphs if text.startswith("Source:")]
    return Description(
        name=name,
        objective=objective,
        summary=paragraphs[0].replace("\n", " "),
        source=" ".join(" ".join(sources).split()),
        parameters=_own_parameters(selector) + _common_parameters(_config(objective)),
    )


def takes_more_arms(name: str) -> bool:
    """Whether a built-in selector accepts arms after observations.

    Raises like `create_selector`.
    """
    return third_party(name) is None and hasattr(_load(name)[0], "add_arms")


def takes_later_scores(name: str) -> bool:
    """Whether a built-in selector accepts scores of unscored pairs later; see `Revising`.

    Raises like `create_selector`.
    """
    return third_party(name) is None and hasattr(_load(name)[0], "revise")


def looks_ahead(name: str) -> bool:
    """Whether a selector can propose rounds while earlier ones are in flight.

    See `LookingAhead`. Raises like `create_selector`.
    """
    return hasattr(_load(name)[0], "take_up")


def rules_version(name: str) -> str | None:
    """Version of the decision rules of a built-in selector; None for any other."""
    return RULES_VERSION if any(name in names for names in SELECTORS.values()) else None


def third_party(name: str) -> EntryPoint | None:
    """Entry point of a third-party selector.

    None for built-in selectors and for unknown names.
    """
    # built-in ones first: reading installed packages is slow
    if any(name in names for names in SELECTORS.values()):
        return None
    return _third_parties().get(name)


def _third_parties() -> dict[str, EntryPoint]:
    ours = {name for names in SELECTORS.values() for name in names}
    return {name: entry for name, entry in plugins(ENTRY_POINT_GROUP).items() if name not in ours}


def _load(name: str, wanted: str | None = None) -> tuple[Callable[..., Selector], str]:
    """Load the class of a selector and its objective."""
    for objective, names in SELECTORS.items():
        if name in names:
            return cast(Callable[..., Selector], object_at(names[name])), objective
    theirs = _third_parties()
    if name not in theirs:
        ours = [each for key, names in SELECTORS.items() if wanted in (None, key) for each in names]
        raise UnknownSelector(name, sorted([*theirs, *ours]))
    try:
        selector = theirs[name].load()
    except (Exception, SystemExit) as error:  # third-party code can fail in any way
        raise SelectorNotLoadable(name, theirs[name].value, in_words(error)) from error
    theirs_is_for = getattr(selector, "objective", None)
    if theirs_is_for not in SELECTORS:
        wanted = f"its attribute `objective` must be one of {', '.join(SELECTORS)}, not {theirs_is_for!r}"
        raise SelectorNotLoadable(name, theirs[name].value, wanted)
    return cast(Callable[..., Selector], selector), theirs_is_for


def _config(objective: str) -> type:
    """The config class of an objective.

    If `SETTINGS` does not list the objective, this is the type of the parameter `config` of its first
    selector.
    """
    if objective in SETTINGS:
        return cast(type, object_at(SETTINGS[objective]))
    first = object_at(next(iter(SELECTORS[objective].values())))
    return cast(type, get_type_hints(first.__init__)["config"])


@cache
def _own_parameters(selector: Callable[..., Selector]) -> tuple[Parameter, ...]:
    try:
        hints = get_type_hints(getattr(selector, "__init__", selector))
    except (NameError, TypeError):  # a plug-in annotates parameters with types that it does not import
        hints = {}
    return tuple(
        Parameter(name=name, type=hints.get(name, object), default=parameter.default)
        for name, parameter in inspect.signature(selector).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    )


@cache
def _common_parameters(config: type) -> tuple[Parameter, ...]:
    hints = get_type_hints(config)
    return tuple(
        Parameter(name=field.name, type=hints[field.name], default=field.default)
        for field in fields(config)
        if field.name not in SIZES
    )


def _check_type(name: str, value: object, annotation: object) -> None:
    options = tuple(_options(annotation))
    if not any(_fits(value, option) for option in options):
        raise InvalidParameter(name, value, " or ".join(map(_type_name, options)))


def _options(annotation: object) -> Iterator[object]:
    """Yield the alternatives of a type annotation one by one.

    Aliases defined by `type` are resolved.
    """
    stands_for = getattr(get_origin(annotation) or annotation, "__value__", None)
    if stands_for is not None:  # also for NumPy's arrays, from 2.5 on
        yield from _options(stands_for)
    elif get_origin(annotation) in (Union, UnionType):
        for option in get_args(annotation):
            yield from _options(option)
    else:
        yield annotation


def _fits(value: object, annotation: object) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if annotation in (int, float):
        number = Integral if annotation is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    kind = get_origin(annotation) or annotation
    return isinstance(value, kind) if isinstance(kind, type) else True


def _type_name(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(map(repr, get_args(annotation)))
    if get_origin(annotation) is np.ndarray:
        return "an array"
    if not isinstance(annotation, type):
        return str(annotation)
    return TYPE_NAMES.get(annotation, annotation.__name__)
