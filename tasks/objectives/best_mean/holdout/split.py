"""Split a dataset into held-out examples and selection examples.

Every example has a number derived from the campaign's seed and its own key. The examples with the lowest
numbers are held out. So the split is the same on resume, with every release of every package, and in every
campaign with this seed on this dataset, whatever the order of its rows. A fork with another seed holds out
other examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import IntArray
from winnow.storage.records import datasets as dataset_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.clusters import LEAST_CLUSTERS, stored_clusters
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.stored_spec import constraints_of
from winnow.tasks.text.canonical_json import sha256

LEAST = 2
"""Minimum number of examples on either side, because a single one allows no interval."""

FINALISTS = 2
"""Maximum number of finalists: the winner and the runner-up."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """A dataset in two parts; integers are example positions."""

    keys: tuple[str, ...]
    """Keys of all examples, by position."""
    selection: IntArray
    """Positions of the selection examples, increasing; shape (n,)."""
    held_out: IntArray
    """Positions of the held-out examples, in random order; shape (h,)."""
    fingerprint: str
    """SHA-256 of the keys of the held-out examples, in their order."""
    clusters: tuple[str, ...] | None = None
    """Cluster of each held-out example, in their order; None if single examples are held out."""
    finalists: int = FINALISTS
    """Number of candidates that are scored on the held-out examples, the winner first."""

    @property
    def whose(self) -> str:
        """The finalists in words."""
        return "the winner" if self.finalists == 1 else "the winner and the runner-up"

    @property
    def comparisons(self) -> int:
        """Number of comparisons on the held-out examples."""
        return self.finalists * len(self.held_out)


def split_examples(
    keys: Sequence[str],
    *,
    share: float,
    seed: int,
    has_constraints: bool = False,
    clusters: Sequence[str] | None = None,
) -> Split:
    """Divide a dataset.

    Args:
        keys: Keys of its examples, all different, by position.
        share: Share of the examples to hold out, in (0, 1).
        seed: The campaign's seed.
        has_constraints: Whether the winner has to meet constraints. If so, only the winner is scored on the
            held-out examples, because it is often unknown whether the runner-up meets them.
        clusters: Cluster of each example, by position. If given, whole clusters are held out, with at least
            the share of the examples.

    Raises:
        SpecError: Selection examples or held-out examples would be too few.
    """
    count = count_held_out(len(keys), share)
    if not LEAST <= count <= len(keys) - LEAST:
        raise SpecError(
            f"holds out {count} of the {len(keys)} examples, and at least {LEAST} are needed on either side; "
            "change holdout, or add examples",
            path="holdout",
        )
    order = sorted(range(len(keys)), key=lambda position: sha256(["holdout", seed, keys[position]]))
    if clusters is not None:
        order, count = _whole_clusters(order, count, clusters, seed)
    held_out = order[:count]
    return Split(
        keys=tuple(keys),
        selection=np.array(sorted(order[count:]), dtype=np.int64),
        held_out=np.array(held_out, dtype=np.int64),
        fingerprint=sha256([keys[position] for position in held_out]),
        clusters=None if clusters is None else tuple(clusters[position] for position in held_out),
        finalists=1 if has_constraints else FINALISTS,
    )


def _whole_clusters(
    order: Sequence[int], count: int, clusters: Sequence[str], seed: int
) -> tuple[list[int], int]:
    """All positions, cluster by cluster in random order, and how many are held out.

    Raises:
        SpecError: Too few clusters are held out, or no cluster is left for selection.
    """
    members: dict[str, list[int]] = {}
    for position in order:
        members.setdefault(clusters[position], []).append(position)
    names = sorted(members, key=lambda name: sha256(["holdout cluster", seed, name]))
    sizes = np.cumsum([len(members[name]) for name in names])
    n_clusters = int(np.searchsorted(sizes, count)) + 1
    if n_clusters < LEAST_CLUSTERS or n_clusters == len(names):
        raise SpecError(
            f"holds out {n_clusters} of the {len(names)} clusters; intervals for new examples need at "
            f"least {LEAST_CLUSTERS}, and selection needs one; change holdout, or add examples",
            path="holdout",
        )
    return [position for name in names for position in members[name]], int(sizes[n_clusters - 1])


def count_held_out(n_examples: int, share: float) -> int:
    """Number of examples to hold out of `n_examples`."""
    return round(share * n_examples)


def stored_split(look: Look) -> Split | None:
    """The split of a stored campaign's dataset; None without held-out examples."""
    share = look.record.spec.get("holdout")
    if share is None:
        return None
    keys = dataset_records.example_keys(look.session, look.record.dataset_id)
    return split_examples(
        keys,
        share=share,
        seed=look.record.seed,
        has_constraints=bool(constraints_of(look.record.spec)),
        clusters=stored_clusters(look.session, look.record),
    )


def selection_keys(look: Look) -> set[str]:
    """Keys of the selection examples; all keys without held-out examples."""
    split = stored_split(look)
    if split is None:
        return set(dataset_records.example_keys(look.session, look.record.dataset_id))
    return {split.keys[position] for position in split.selection.tolist()}


def selection_budget(limit: int | None, split: Split) -> int | None:
    """The part of a limit for selection; None without a limit.

    The rest is reserved for scoring finalists.
    """
    return None if limit is None else limit - split.comparisons
