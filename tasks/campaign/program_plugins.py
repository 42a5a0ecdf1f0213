"""Plug-ins of a stored campaign that no installed package provides.

A program registers such a plug-in by a decorator. Only that program can continue the campaign, because the
command line does not import it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from winnow.algorithms.state.plugin_registry import Registered, plugins
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.engines.known_providers import BUILT_IN_EMBEDDERS, FUNCTION, PROVIDERS
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.judge_tree import BUILT_IN, PAIRS, judge_trees, judging_models

KINDS = {"engine": "provider", "pair_judge": "pair judge"}
"""User-facing word for a kind of plug-in, by decorator, if it is not the decorator's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginName:
    """A plug-in named in a stored spec."""

    decorator: str
    """Decorator of `winnow` that registers the plug-in in a program."""
    name: str
    path: str
    """Key of the name in the spec, such as "judge.type"."""
    ours: Collection[str]
    """Names of built-in parts of this kind."""

    @property
    def kind(self) -> str:
        """User-facing word for the plug-in's kind."""
        return KINDS.get(self.decorator, self.decorator)

    @property
    def group(self) -> str:
        """Entry-point group in which packages register plug-ins of this kind."""
        return f"winnow.{self.decorator}s"


def require_plugins(campaign: CampaignRecord) -> None:
    """Check that all plug-ins of a campaign are available.

    Raises:
        SpecError: A plug-in is missing.
    """
    for each in _plugin_names(campaign):
        if each.name not in (found := plugins(each.group)):
            known = {*each.ours, *found} - {FUNCTION}
            raise SpecError(
                f"{unknown_name(each.kind, each.name, known)}; if a program defines it by "
                f"@winnow.{each.decorator}, call winnow.run in that program again",
                path=each.path,
            )


def named_by_program(campaign: CampaignRecord) -> str | None:
    """Clause on a plug-in that only a program registers; None without one."""
    for each in _plugin_names(campaign):
        if isinstance(plugins(each.group).get(each.name), Registered | None):
            return f"{each.kind} {each.name!r} is named by @winnow.{each.decorator}"
    return None


def _plugin_names(campaign: CampaignRecord) -> Iterator[PluginName]:
    """Yield the plug-ins that a stored campaign names."""
    for decorator, name, path in _names(campaign):
        if name is not None and name not in (ours := _ours(decorator)):
            yield PluginName(decorator=decorator, name=str(name), path=path, ours=ours)


def _ours(decorator: str) -> Collection[str]:
    if decorator == "selector":
        from winnow.algorithms.registry import SELECTORS  # it imports numpy

        return {name for names in SELECTORS.values() for name in names}
    ours: dict[str, Collection[str]] = {
        "engine": PROVIDERS,
        "judge": BUILT_IN,
        "pair_judge": PAIRS,
        "embedder": BUILT_IN_EMBEDDERS,
    }
    return ours[decorator]


def _names(campaign: CampaignRecord) -> Iterator[tuple[str, object, str]]:
    """Yield decorator, name and key of each part that may be a plug-in."""
    spec = campaign.spec
    models = [(f"models[{number}]", model) for number, model in enumerate(spec.get("models", ()))]
    for place, model in (*models, *judging_models(spec)):
        yield "engine", model.get("provider"), f"{place}.provider"
    for tree in judge_trees(spec):
        for judge in tree.walk():  # a judge of pairs may hold one of outputs
            is_of_pairs = judge.place == "judge" and traits_of(campaign.objective).compares_pairs
            yield "pair_judge" if is_of_pairs else "judge", judge.type, f"{tree.place}.type"
    if spec.get("selector_code") is not None:  # which only plug-ins have
        yield "selector", spec["selector"]["name"], "selector.name"
    yield "embedder", (spec.get("embedder") or {}).get("type"), "embedder.type"
