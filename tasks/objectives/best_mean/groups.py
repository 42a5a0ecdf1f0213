"""Groups of a campaign's examples, and selectors that compare by groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.best_mean.groups import MOST_RATIO, Groups
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.storage.json_types import JsonObject
from winnow.tasks.dotted_names import MISSING, unknown_field, value_of
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.selector_traits import COMPARES_GROUPS

if TYPE_CHECKING:
    from winnow.tasks.data.datasets import Example
    from winnow.tasks.spec.campaign import CampaignSpec
    from winnow.tasks.spec.sections.objectives import GroupsSpec

MOST_GROUPS = 100
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExampleGroups:
    """The group of each example, and the weight of each group."""

    names: tuple[str, ...]
    """Names of the G groups, sorted."""
    of_example: IntArray
    """Index of each example's group, from 0 to G - 1; shape (n,)."""
    weights: FloatArray | None
    """Weight of each group, above 0, shape (G,); None if the lowest group mean counts."""

    def params(self) -> JsonObject:
        """Parameters of the selector for the groups."""
        return {"groups": self.of_example, "group_weights": self.weights}

    def words(self, by: str) -> str:
        """The compared values, as the end of a sentence.

        Args:
            by: The field that defines the groups.
        """
        count = len(self.names)
        shares = self.as_selectors_have_them.shares
        if shares is None:
            return f"; candidates are compared by the lowest of their means on {count} groups, by {by}"
        told = [f"{name} {share:.1%}" for name, share in zip(self.names, shares.tolist(), strict=True)]
        more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
        said = f"by the mean of {count} groups' means, by {by}: {', '.join(told[:MOST_NAMED])}{more}"
        return f"; candidates are compared {said}"

    @property
    def as_selectors_have_them(self) -> Groups:
        """The groups in the form that selectors use."""
        return Groups.of(self.of_example, self.weights)


def check_groups(spec: "CampaignSpec", examples: "Sequence[Example]") -> ExampleGroups | None:
    """Check a campaign's groups and return them; None without groups.

    Raises:
        SpecError: An example is in no group or in several, a weight has no group or is missing, or another
            setting is incompatible with groups.
    """
    if spec.groups is None:
        return None
    _check_question(spec, spec.groups)
    return example_groups(spec.groups, examples)


def example_groups(groups: "GroupsSpec", examples: "Sequence[Example]") -> ExampleGroups:
    """Determine the groups of examples.

    Raises:
        SpecError: An example is in no group or in several, or a weight has no group or is missing.
    """
    of_example = [_group_of(example, groups.by, examples) for example in examples]
    names = sorted(set(of_example))
    require_several(len(names), groups.by, path="groups.by")
    place = {name: number for number, name in enumerate(names)}
    numbers = np.array([place[name] for name in of_example], dtype=np.int64)
    weights = None if groups.objective == "worst" else _weights(groups, names, numbers)
    return ExampleGroups(names=tuple(names), of_example=numbers, weights=weights)


def require_several(count: int, by: str, path: str | None = None) -> None:
    """Refuse a single group, and more groups than can be read, as from a field of ids.

    Raises:
        SpecError: The number of groups is 1, or above `MOST_GROUPS`.
    """
    if not 2 <= count <= MOST_GROUPS:
        raise SpecError(
            f"the examples have {count} different values of {by}, and 2 to {MOST_GROUPS} groups are allowed; "
            "group by another field, or remove groups",
            path=path,
        )


def _check_question(spec: "CampaignSpec", groups: "GroupsSpec") -> None:
    name = spec.selector.name
    if name not in COMPARES_GROUPS:
        raise SpecError(
            f"{name} compares candidates only by the mean over all examples; choose selector "
            f"{' or '.join(COMPARES_GROUPS)}, or remove groups",
            path="groups",
        )
    for key in sorted({"groups", "group_weights"} & spec.selector.params.keys()):
        raise SpecError(
            f"is computed from the file's groups; set groups, and remove {key}", path=f"selector.params.{key}"
        )
    if groups.objective == "worst" and "race" in (name, spec.selector.params.get("start")):
        raise SpecError(
            "a race on common examples cannot compare the lowest group means; choose selector champion, "
            "without start: race",
            path="groups.objective",
        )
    if spec.holdout is not None:
        raise SpecError(
            "results on held-out examples are plain means, not means by groups; remove holdout or groups",
            path="holdout",
        )
    for key, plain in (("top_m", 1), ("prefer", "mean")):
        if spec.selector.params.get(key, plain) != plain:
            raise SpecError(
                f"{key} needs the mean over all examples; remove {key} or groups",
                path=f"selector.params.{key}",
            )


def _group_of(example: "Example", field: str, examples: "Sequence[Example]") -> str:
    value = value_of(example.fields, field)
    if value is None or value == "" or value is MISSING:
        if all(value_of(each.fields, field) is MISSING for each in examples):
            rows = [each.fields for each in examples]
            raise SpecError(unknown_field("field", field, rows), path="groups.by")
        raise SpecError(
            f"example '{example.key}' has no {field}, so it is in no group; add a value, or "
            "exclude the example by dataset.filter",
            path="groups.by",
        )
    if not isinstance(value, str | int):
        raise SpecError(
            f"{field} of example '{example.key}' is {value!r}, and the name of a group has to be a text, a "
            "whole number, or yes or no; group by another field",
            path="groups.by",
        )
    return str(value)


def _weights(groups: "GroupsSpec", names: Sequence[str], of_example: IntArray) -> FloatArray:
    if groups.weights == "equal":
        return np.ones(len(names))
    if groups.weights == "size":
        return np.bincount(of_example).astype(np.float64)
    given: dict[str, float] = dict(groups.weights)
    for name in given:
        if name not in names:
            raise SpecError(
                f"{unknown_name('group', name, names)}; a group without an example has no mean",
                path="groups.weights",
            )
    if missing := [name for name in names if name not in given]:
        raise SpecError(
            f"there is no weight for {', '.join(missing)}; add a weight for every group",
            path="groups.weights",
        )
    if max(given.values()) > MOST_RATIO * min(given.values()):
        raise SpecError(
            f"a group's weight is more than {MOST_RATIO} times another one's; exclude the groups of low "
            "weight by dataset.filter",
            path="groups.weights",
        )
    return np.array([given[name] for name in names], dtype=np.float64)
