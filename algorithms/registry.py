"""Selectors by name, ours and third parties', each imported only when it is looked at.

A third party adds a selector by an entry point in the group `winnow.selectors`: its name is the selector's,
its object a class like ours, with an attribute `objective` and a constructor that takes the config of that
objective, then parameters of its own by keyword. A name of ours cannot be taken over. A program names one
of its own by `winnow.selector`.
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
"""Classes of the settings that selectors are given, sizes and common parameters, by objective."""

SELECTORS = {
    "best-mean": {
        "champion": "winnow.algorithms.champion.selector:Champion",
        "filled-subset": "winnow.algorithms.papers.best_mean.filled_subset:FilledSubset",
        "gate": "winnow.algorithms.gate.selector:Gate",
        "halving": "winnow.algorithms.best_mean.baselines.halving:Halving",
        "lrf": "winnow.algorithms.papers.best_mean.lrf:Lrf",
        "naive-pooling": "winnow.algorithms.papers.best_mean.naive_pooling:NaivePooling",
        "pulse": "winnow.algorithms.papers.best_mean.pulse:Pulse",
        "race": "winnow.algorithms.champion.selector:RaceOnly",
        "row-mean": "winnow.algorithms.best_mean.baselines.row_mean:RowMean",
        "ucb-e": "winnow.algorithms.papers.best_mean.ucb_e:UcbE",
        "ucb-e-lrf": "winnow.algorithms.papers.best_mean.ucb_e_lrf:UcbELrf",
        "ucb-e-lrf-score-only": "winnow.algorithms.papers.best_mean.ucb_e_lrf_score_only:UcbELrfScoreOnly",
    },
    "best-duel": {
        "eps-greedy": "winnow.algorithms.papers.best_duel.eps_greedy:EpsGreedy",
        "llm-po": "winnow.algorithms.best_duel.llm_po:LlmPo",
        "llm-po-bt": "winnow.algorithms.papers.bradley_terry.llm_po_bt:LlmPoBt",
        "random-pair": "winnow.algorithms.papers.best_duel.random_pair:RandomPair",
        "round-robin": "winnow.algorithms.papers.best_duel.round_robin:RoundRobin",
        "rucb": "winnow.algorithms.papers.best_duel.rucb:Rucb",
        "thompson": "winnow.algorithms.papers.best_duel.thompson:Thompson",
    },
    "certify": {
        "autoeval": "winnow.algorithms.certify.r_autoeval_plus:AutoEval",
        "eval": "winnow.algorithms.certify.r_autoeval_plus:Eval",
        "r-autoeval": "winnow.algorithms.certify.r_autoeval_plus:RAutoEval",
        "r-autoeval-plus": "winnow.algorithms.certify.r_autoeval_plus:RAutoEvalPlus",
        "r-eval": "winnow.algorithms.certify.r_autoeval_plus:REval",
    },
    "route": {
        "kernel-ucb": "winnow.algorithms.route.policies.kernel_ucb:KernelUcb",
        "lin-ucb": "winnow.algorithms.route.policies.lin_ucb:LinUcb",
        "naive-krr": "winnow.algorithms.route.policies.naive_krr:NaiveKrr",
        "pak-ucb": "winnow.algorithms.route.policies.pak_ucb:PakUcb",
        "random": "winnow.algorithms.route.policies.random_arm:RandomArm",
        "rff-ucb": "winnow.algorithms.route.policies.rff_ucb:RffUcb",
        "sup-pak-ucb": "winnow.algorithms.route.policies.sup_pak_ucb:SupPakUcb",
        "sup-rff-ucb": "winnow.algorithms.route.policies.sup_rff_ucb:SupRffUcb",
    },
}
"""The addresses of our selectors' classes, by objective and name."""

BASELINES = frozenset(
    {"autoeval", "eps-greedy", "eval", "filled-subset", "kernel-ucb", "lin-ucb", "lrf", "naive-krr",
     "naive-pooling", "random", "random-pair", "round-robin", "row-mean", "rucb", "thompson"}
)  # fmt: skip
"""Those that papers compare their selectors with; they are listed and offered only on request."""

RULES_VERSION = "1"
"""Raise it whenever one of these selectors decides otherwise on outcomes that it could have been told before:
`winnow db check` makes stored decisions again where they were made by rules of the same version."""

SIZES = ("n_arms", "n_examples")
TYPE_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false", NoneType: "None"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a selector."""

    name: str
    type: object
    """The annotation."""
    default: object
    """The value where none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The description of a selector, as `winnow selectors` shows it."""

    name: str
    objective: str
    summary: str
    """First line of the class's docstring."""
    source: str
    """The published source, from the docstring; empty where it names none."""
    parameters: tuple[Parameter, ...]
    """Its own parameters, then those common to its objective."""


def create_selector(name: str, *, n_arms: int, n_examples: int, **params: object) -> Selector:
    """Make a selector that was told nothing yet.

    Args:
        name: One of `selector_names()`.
        n_arms: K, the number of arms.
        n_examples: n, the number of examples.
        params: Values for some of `describe(name).parameters`.

    Raises:
        UnknownSelector: If no selector has this name.
        SelectorNotLoadable: If a third party's selector cannot be imported or used.
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
    """The known names in alphabetical order, of one objective or of all, with or without `BASELINES`."""
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
    """Whether a selector of another package is for an objective; one that cannot be loaded is for none."""
    try:
        return _load(name)[1] == objective
    except AlgorithmError:
        return False


def describe(name: str, wanted: str | None = None) -> Description:
    """The description of a selector and its parameters; raises like `create_selector`.

    Args:
        name: The selector's.
        wanted: The objective whose selectors are named where there is none of this name; None for all. Those
            of third parties, which are not loaded for that, are named for each.
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
    """Whether a selector of ours lets arms join after it was told outcomes; raises like `create_selector`."""
    return third_party(name) is None and hasattr(_load(name)[0], "add_arms")


def looks_ahead(name: str) -> bool:
    """Whether a selector can be asked for rounds while earlier ones are in flight; see `LookingAhead`.

    Raises like `create_selector`.
    """
    return hasattr(_load(name)[0], "take_up")


def rules_version(name: str) -> str | None:
    """The version of the rules by which a selector of ours decides; None for any other one."""
    return RULES_VERSION if any(name in names for names in SELECTORS.values()) else None


def third_party(name: str) -> EntryPoint | None:
    """The entry point of a selector of another package; None for our selectors and for unknown ones."""
    if any(name in names for names in SELECTORS.values()):  # packages take long to read: ours come first
        return None
    return _third_parties().get(name)


def _third_parties() -> dict[str, EntryPoint]:
    ours = {name for names in SELECTORS.values() for name in names}
    return {name: entry for name, entry in plugins(ENTRY_POINT_GROUP).items() if name not in ours}


def _load(name: str, wanted: str | None = None) -> tuple[Callable[..., Selector], str]:
    """The class of a selector and its objective."""
    for objective, names in SELECTORS.items():
        if name in names:
            return cast(Callable[..., Selector], object_at(names[name])), objective
    theirs = _third_parties()
    if name not in theirs:
        ours = [each for key, names in SELECTORS.items() if wanted in (None, key) for each in names]
        raise UnknownSelector(name, sorted([*theirs, *ours]))
    try:
        selector = theirs[name].load()
    except (Exception, SystemExit) as error:  # a stranger's module may fail in any way
        raise SelectorNotLoadable(name, theirs[name].value, in_words(error)) from error
    theirs_is_for = getattr(selector, "objective", None)
    if theirs_is_for not in SETTINGS:
        wanted = f"its attribute `objective` must be one of {', '.join(SETTINGS)}, not {theirs_is_for!r}"
        raise SelectorNotLoadable(name, theirs[name].value, wanted)
    return cast(Callable[..., Selector], selector), theirs_is_for


def _config(objective: str) -> type:
    return cast(type, object_at(SETTINGS[objective]))


@cache
def _own_parameters(selector: Callable[..., Selector]) -> tuple[Parameter, ...]:
    try:
        hints = get_type_hints(getattr(selector, "__init__", selector))
    except (NameError, TypeError):  # of a plug-in that names types it does not import
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
    """The options that an annotation allows, one by one; names defined by `type` give what they stand for."""
    stands_for = getattr(get_origin(annotation) or annotation, "__value__", None)
    if stands_for is not None:  # of NumPy's arrays, too, from 2.5 on
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
