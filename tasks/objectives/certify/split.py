"""Split a dataset into labellable examples and the unlabelled examples of each.

With r unlabelled examples for each labelled one, at most a share of 1 / (1 + r) of a dataset can be labelled.
Examples with a target in the dataset come first. If no example has a target, or if `certify.labellable`
requests more, other examples are drawn at random, and their labels arrive later. All remaining examples form
the unlabelled pool, which is divided at random into blocks of r. The target of an example in the pool is not
read.

The draw depends only on the campaign's seed and the dataset's content. So it is the same on resume, and
independent of the labels that have arrived. A certificate is valid for the population of which labelled and
unlabelled examples are both random samples: the rows with targets must have been chosen at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import IntArray
from winnow.storage.json_types import JsonView
from winnow.storage.records.record_types import CampaignRecord, NewExample
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.judge_tree import is_human
from winnow.tasks.text.canonical_json import sha256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The split of a dataset; integers are example positions."""

    labellable: IntArray
    """Positions of the labellable examples, shape (n,)."""
    blocks: IntArray
    """Positions of each labellable example's unlabelled examples, shape (n, r); no example occurs twice."""

    def block(self, example: int) -> list[int]:
        """Positions of the unlabelled examples of one labellable example."""
        found: list[int] = self.blocks[np.flatnonzero(self.labellable == example)[0]].tolist()
        return found


def divide(
    has_target: Sequence[bool], *, seed: int, fingerprint: str, per_label: int, labellable: int | None
) -> Parts:
    """Split a dataset.

    Args:
        has_target: Whether each example has a target in the dataset.
        seed: The campaign's seed.
        fingerprint: The dataset's fingerprint.
        per_label: Number r of unlabelled examples for each labelled one, at least 0.
        labellable: Number n of labellable examples. None for all examples with a target, or for as many as
            possible if no example has one.

    Raises:
        SpecError: The dataset has too few examples.
    """
    most = len(has_target) // (1 + per_label)
    if most < 1 or (labellable is not None and labellable > most):
        raise SpecError(
            f"the dataset has {len(has_target)} examples, of which {most} can be labelled with {per_label} "
            "unlabelled ones for each; lower labellable or unlabelled_per_label, or add examples",
            path="certify.labellable" if labellable is not None else "certify.unlabelled_per_label",
        )
    count = min(most, sum(has_target)) or most if labellable is None else labellable
    rng = np.random.default_rng(int(sha256(["parts", seed, fingerprint])[:16], 16))
    order = rng.permutation(len(has_target))
    order = order[np.argsort(~np.array(has_target)[order], kind="stable")]
    pool = rng.permutation(order[count:])[: count * per_label]
    return Parts(labellable=order[:count], blocks=pool.reshape(count, per_label))


def parts_of(campaign: CampaignRecord, examples: Sequence[NewExample]) -> Parts:
    """The split of a stored campaign's dataset."""
    return divide_by_spec(
        campaign.spec,
        [bool(each.targets) for each in examples],
        seed=campaign.seed,
        fingerprint=str(campaign.spec["dataset_fingerprint"]),
    )


def divide_by_spec(spec: JsonView, has_target: Sequence[bool], *, seed: int, fingerprint: str) -> Parts:
    """Split a dataset as `divide` does, by a spec's JSON values.

    If annotators rate outputs, targets do not count as labels.
    """
    section = spec["certify"]
    return divide(
        [False] * len(has_target) if is_human(spec) else has_target,
        seed=seed,
        fingerprint=fingerprint,
        per_label=0 if section["autoevaluator"] is None else section["unlabelled_per_label"],
        labellable=section["labellable"],
    )
