"""Evidence of a certify campaign, by replaying its rounds to a new selector."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import labels
from winnow.storage.records import rounds as round_records
from winnow.storage.records.labels import LabelRecord
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.stored_values import stored_spec
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.certify.certificate import BONFERRONI, is_at_most, risk_of
from winnow.tasks.objectives.certify.objective import (
    BETTING_RULE,
    LabelSelector,
    as_losses,
    certifying_selector,
)
from winnow.tasks.objectives.certify.split import parts_of
from winnow.tasks.objectives.human.files import label_rows as people_rows
from winnow.tasks.spec.judge_tree import is_human

LARGEST_LOG = 700.0
"""Largest logarithm whose exponential is a finite float, rounded down."""
LOOKS = 8
"""Number of label counts that a table of e-values has as columns."""


def e_values(look: Look) -> list[Row]:
    """One row per candidate and label of its test: the e-value after this label.

    Candidates are in testing order, labels in the order of observation. `needed` is the e-value that the
    candidate must reach once to pass its test. An e-value that is too large for a float is null; its
    logarithm is finite.
    """
    selector, names = _fresh(look)
    keys = [each.key for each in dataset_records.examples(look.session, look.record.dataset_id)]
    _evidence(selector, look.record)
    needed = _needed(look.record, len(names))
    counts, rows = [0] * len(names), []
    for told in round_records.told_rounds(look.session, look.record.id):
        for arm, example, losses in zip(told.arms, told.examples, told.losses, strict=True):
            selector.tell(Batch(np.array([arm]), np.array([example])), as_losses([losses]))
            logs = _evidence(selector, look.record)[0]
            counts[arm] += 1
            rows.append(
                {
                    "candidate": names[arm],
                    "labels": counts[arm],
                    "e_value": math.exp(logs[arm]) if logs[arm] < LARGEST_LOG else None,
                    "log_e_value": float(logs[arm]),
                    "needed": needed,
                    "example": keys[example],
                    "human_loss": losses[0],
                    "auto_loss": losses[1],
                    "unlabelled_loss": losses[2],
                    "unlabelled_missing": losses[3],
                }
            )
    order = {name: arm for arm, name in enumerate(names)}
    return sorted(rows, key=lambda row: order[row["candidate"]])


def weights(look: Look) -> list[Row]:
    """How much each candidate's test relies on the autoevaluator.

    One row per candidate and factor rho.
    """
    selector, names = _updated_selector(look)
    inner = _inner(selector)
    _evidence(selector, look.record)
    return [
        {"candidate": name, "rho": float(rho), "weight": float(weight)}
        for name, shares in zip(names, inner.weights, strict=True)
        for rho, weight in zip(inner.factors, shares, strict=True)
    ]


def standings(look: Look) -> list[Row]:
    """One row per candidate in testing order: cost, labels, evidence, plain mean."""
    selector, names = _updated_selector(look)
    logs, peaks = _evidence(selector, look.record)
    certified: BoolArray = selector.inner.certified  # type: ignore[attr-defined]
    counts = dict.fromkeys(names, 0)
    for told in round_records.told_rounds(look.session, look.record.id):
        for arm in told.arms:
            counts[names[arm]] += 1
    risk = risk_of(look.record)
    return [
        {
            "candidate": name,
            "cost": look.record.spec["candidate_costs"][name],
            "labels": counts[name],
            "e_value": _power(logs[arm]),
            "highest": _power(peaks[arm]),
            "needed": _needed(look.record, len(names)),
            "certified": bool(certified[arm]),
            "mean_loss": mean,
            "plain_estimate": "" if mean is None else "passes" if is_at_most(mean, risk) else "fails",
        }
        for arm, (name, mean) in enumerate(
            zip(names, labels.mean_losses(look.session, look.record.id), strict=True)
        )
    ]


def paths(look: Look) -> list[Row]:
    """E-values by number of labels, for a terminal: one row per candidate.

    A test can end between two of the columns, so `last` is its final e-value and number of labels.
    """
    rows = e_values(look)
    most = max((row["labels"] for row in rows), default=0)
    looks = sorted({round(most * look / LOOKS) for look in range(1, LOOKS + 1)} - {0})
    found = {(row["candidate"], row["labels"]): row for row in rows}
    ends = {row["candidate"]: row for row in rows}
    return [
        {
            "candidate": name,
            **{str(look): _at(found.get((name, look))) for look in looks},
            "last": f"{_at(end)} at {end['labels']}",
        }
        for name, end in ends.items()
    ]


def weight_table(look: Look) -> list[Row]:
    """The weights with one column for each factor rho; empty with a single factor."""
    table: dict[str, Row] = {}
    for row in weights(look):
        table.setdefault(row["candidate"], {"candidate": row["candidate"]})[f"{row['rho']:.2f}"] = row[
            "weight"
        ]
    return [row for row in table.values() if len(row) > 2]  # one column is the name


def label_rows(look: Look) -> list[Row]:
    """One row per labellable example; those that the campaign waits for are first.

    If annotators rate outputs, there is one row per output; see `human.files.label_rows`. `winnow label`
    accepts these rows. `state` has these values:

    * "wanted": a round waits for the label.
    * "used": the label is used in a stored comparison, of this or another campaign.
    * "given": the label is not used yet.
    * "skipped": no human can answer the example, and its loss counts as 1.
    * "open": the example has no label.
    """
    if is_human(look.record.spec):
        return people_rows(look)
    examples = dataset_records.examples(look.session, look.record.dataset_id)
    given = labels.labels(look.session, look.record.dataset_id)
    used = labels.used_positions(look.session, look.record.dataset_id)
    round_ = round_records.unfinished_round(look.session, look.record.id)
    planned = list(dict.fromkeys(round_.examples)) if round_ else []
    rows = []
    for position in sorted(parts_of(look.record, examples).labellable.tolist()):
        example, label = examples[position], given.get(position)
        targets = list(example.targets) or (list(label.targets) if label else [])
        rows.append(
            {
                "id": example.key,
                "target": (targets[0] if len(targets) == 1 else targets) if targets else None,
                "skip": not targets and label is not None,
                "state": _state(targets, label, is_used=position in used, is_planned=position in planned),
                "source": "dataset" if example.targets else label.source if label else None,
                "labelled_at": label.labelled_at if label else None,
                "input": example.fields["input"],
            }
        )
    return sorted(rows, key=lambda row: row["state"] != "wanted")


def _state(targets: Sequence[str], label: LabelRecord | None, *, is_used: bool, is_planned: bool) -> str:
    """State of an example that can be labelled; see `label_rows`."""
    if not targets and label is not None:
        return "skipped"
    if targets:
        return "used" if is_used else "given"
    return "wanted" if is_planned else "open"


def _updated_selector(look: Look) -> tuple[LabelSelector, list[str]]:
    selector, names = _fresh(look)
    for told in round_records.told_rounds(look.session, look.record.id):
        selector.tell(Batch(np.array(told.arms), np.array(told.examples)), as_losses(told.losses))
    return selector, names


def _fresh(look: Look) -> tuple[LabelSelector, list[str]]:
    names = campaign_records.candidate_names(look.session, look.record.id)
    parts = parts_of(look.record, dataset_records.examples(look.session, look.record.dataset_id))
    spec, rule = stored_spec(look.record, ""), look.record.spec[BETTING_RULE]
    return certifying_selector(spec, len(names), parts, rule, intervals=False), names


def _inner(selector: LabelSelector) -> Any:  # noqa: ANN401 -- its kind is known by its attributes
    return selector.inner


def _evidence(selector: LabelSelector, campaign: CampaignRecord) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the current and the highest e-values, by arm."""
    inner = _inner(selector)
    if not hasattr(inner, "log_e_values"):
        name = campaign.spec["selector"]["name"]
        raise WinnowError(f"{name} has no e-values, because it uses a plain mean; choose r-autoeval-plus")
    return inner.log_e_values, inner.log_peaks


def _needed(campaign: CampaignRecord, n_arms: int) -> float:
    """The e-value needed to pass: 1 / delta, or K / delta for K simultaneous tests."""
    tests = n_arms if campaign.spec["selector"]["params"].get("procedure") == BONFERRONI else 1
    return float(tests / campaign.spec["stopping"]["delta"])


def _power(log: float) -> float | None:
    return math.exp(log) if log < LARGEST_LOG else None


def _at(row: Row | None) -> str:
    if row is None:
        return ""
    return "huge" if row["e_value"] is None else f"{row['e_value']:.3g}"
