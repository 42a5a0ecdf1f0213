"""Plain means next to the answer: scores by tag (a field of the examples), metrics, cost and time.

The intervals are for single means. The selector chose, after seeing scores, the examples of each candidate
and their number; and among many groups some look bad by chance. So none of it is certified.
Neither are cost and time, which no selector observes.
"""

import math
from collections.abc import Mapping, Set
from math import sqrt

from winnow.storage.json_types import Row
from winnow.storage.queries.campaign_views import leaderboard
from winnow.storage.queries.campaign_views import metrics as metric_means
from winnow.storage.queries.costs import CandidateTexts, reported_by_candidate, texts_by_candidate
from winnow.storage.records.campaigns import candidate_names
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights, reporting_models
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.tag_counts import TagCounts, Tallies, Tally
from winnow.tasks.queries.warnings.from_outputs import OUT
from winnow.tasks.spec.stored_spec import grouping_of

Z = 1.959963984540054
"""The 97.5% quantile of the normal distribution: intervals are at 95%."""


def tags_of(campaign: CampaignRecord) -> list[str]:
    """The tag fields of a campaign's examples; first the field that defines groups, if groups are set."""
    groups = grouping_of(campaign.spec)
    by = [] if groups is None else [groups.by]
    return list(dict.fromkeys([*by, *campaign.execution.get("tags", [])]))


def tags(look: Look, *, candidate: str | None = None, counts: TagCounts | None = None) -> list[Row]:
    """One row per tag of the spec, value and candidate.

    Tags and candidates are in the spec's order, values in order of occurrence. `examples` is the number of
    examples in the dataset with the value. `lower` and `upper` are Wilson's interval at 95%, as if the scored
    examples were a random sample; they are not certified. `worst` marks the values of each tag in which a
    candidate has its lowest mean; none is marked if its mean is the same in all. Comparisons of candidates
    other than `candidate` are not read; `counts` are those of an earlier call, or None.
    """
    wanted = tags_of(look.record)
    if not wanted:
        return []
    names = candidate_names(look.session, look.record.id) if candidate is None else [candidate]
    sizes, found = (counts or TagCounts()).look(look.session, look.record, wanted, names)
    worst = _worst(found)
    return [
        {
            "tag": tag,
            "value": value,
            "candidate": name,
            "examples": sizes[tag, value],
            **_told(found[name][tag, value]),
            "worst": value in worst.get((tag, name), ()),
        }
        for tag, value in sorted(sizes, key=lambda each: wanted.index(each[0]))
        for name in names
    ]


def metrics(look: Look) -> list[Row]:
    """The mean of each metric for each candidate, with a plain interval as for tags; not certified."""
    return [
        {**row, **_interval(row["mean"], row["scored"])} for row in metric_means(look.session, look.record.id)
    ]


def wilson(mean: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval for the mean of n numbers in [0, 1], with at most the variance of 0 and 1."""
    shrunk = 1.0 + Z * Z / n
    centre = (mean + Z * Z / (2 * n)) / shrunk
    half = Z / shrunk * sqrt(mean * (1.0 - mean) / n + Z * Z / (4 * n * n))
    # Equal at the ends, but for the rounding.
    lower = max(0.0, centre - half) if mean > 0.0 else 0.0
    return lower, min(1.0, centre + half) if mean < 1.0 else 1.0


def _told(tally: Tally) -> Row:
    counts = {"scored": tally.scored, "unscored": tally.unscored}
    mean = min(1.0, tally.total / tally.scored) if tally.scored else None
    return {**counts, "mean": mean, **_interval(mean, tally.scored)}


def _interval(mean: float | None, n: int) -> Row:
    lower, upper = (None, None) if mean is None else wilson(mean, n)
    return {"lower": lower, "upper": upper}


def _worst(found: Mapping[str, Tallies]) -> dict[tuple[str, str], Set[str]]:
    """The values with the lowest mean, by tag and candidate; empty if all means are equal."""
    means: dict[tuple[str, str], dict[str, float]] = {}
    for name, tallies in found.items():
        for (tag, value), tally in tallies.items():
            if tally.scored:
                means.setdefault((tag, name), {})[value] = tally.total / tally.scored
    return {
        key: {value for value, mean in of_values.items() if mean == min(of_values.values())}
        for key, of_values in means.items()
        if len(set(of_values.values())) > 1
    }


TEXTS = 1_000
"""Number of outputs that a price refers to."""

NOISE = 2.0
"""Standard errors of a difference between two means up to which the means count as equal."""


def pareto(look: Look) -> list[Row]:
    """One row per candidate with outputs, best estimate first.

    `tokens`, `seconds`, `latency` and `cost` are means per output, each followed by its standard deviation:
    input and output tokens; engine time, which outputs of one batch share; the time from a request to its
    answer, null if no engine reported it; and the price of a thousand outputs, null if a price is unknown.

    `pareto` is true if the candidate is not out and no other one that is not out beats it: none has at least
    as high an estimate, is not clearly dearer (in tokens if a price is unknown), is not clearly slower (in
    seconds if a latency is unknown), and is better in one of the three. Nothing of this is proved.
    """
    texts = texts_by_candidate(look.session, look.record.id)
    reports = bool(reporting_models(look.record.spec))
    reported = reported_by_candidate(look.session, look.record.id) if reports else {}
    rows = [
        _row(look.record, row, texts[row["candidate"]], reported.get(row["candidate"]))
        for row in leaderboard(look.session, look.record.id)
        if row["candidate"] in texts
    ]
    by = "tokens" if any(row["cost"] is None for row in rows) else "cost"
    time = "seconds" if any(row["latency"] is None for row in rows) else "latency"
    left = [row for row in rows if row["estimate"] is not None and row["status"] not in OUT]
    return [
        {**row, "pareto": row in left and not any(_beats(other, row, by, time) for other in left)}
        for row in rows
    ]


def _row(
    campaign: CampaignRecord, row: Row, texts: CandidateTexts, reported: tuple[float, float] | None
) -> Row:
    weights = price_weights(campaign, texts.model)
    cost = None if weights is None else (texts.mean(*weights), texts.deviation(*weights))
    cost = cost or reported
    latency, latency_sd = texts.latency or (None, None)
    return {
        **{name: row[name] for name in ("candidate", "status", "estimate", "lower", "upper")},
        "texts": texts.texts,
        "tokens": texts.mean(1.0, 1.0),
        "tokens_sd": texts.deviation(1.0, 1.0),
        "seconds": texts.mean(0.0, 0.0, 1.0),
        "seconds_sd": texts.deviation(0.0, 0.0, 1.0),
        "latency": latency,
        "latency_sd": latency_sd,
        "cost": None if cost is None else TEXTS * cost[0],
        "cost_sd": None if cost is None else TEXTS * cost[1],
    }


def _beats(one: Row, other: Row, by: str, time: str) -> bool:
    spent = [_compared(one, other, name) for name in (by, time)]
    is_higher = one["estimate"] > other["estimate"]
    return one["estimate"] >= other["estimate"] and max(spent) <= 0 and (is_higher or min(spent) < 0)


def _compared(one: Row, other: Row, name: str) -> int:
    """The sign of the difference of two candidates' means; 0 if it is within the noise of these means."""
    difference: float = one[name] - other[name]
    error = math.hypot(*(row[f"{name}_sd"] / math.sqrt(row["texts"]) for row in (one, other)))
    if abs(difference) <= NOISE * error:
        return 0
    return 1 if difference > 0 else -1
