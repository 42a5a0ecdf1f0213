"""Plain means that accompany an answer: scores by tag, metrics, cost and time.

A tag is a field of the examples. The intervals are for single means. The selector chose the examples of each
candidate, and their number, after seeing scores; and among many groups some look bad by chance. So nothing
here is certified, and cost and time are not observed by any selector.
"""

import math
from collections.abc import Mapping, Set
from math import sqrt

from winnow.storage.json_types import Row
from winnow.storage.queries.campaign_views import leaderboard, names_out
from winnow.storage.queries.campaign_views import metrics as metric_means
from winnow.storage.queries.costs import CandidateTexts, reported_by_candidate, texts_by_candidate
from winnow.storage.records.campaigns import candidate_names
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.budget import price_weights, reporting_models
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.tag_counts import TagCounts, Tallies, Tally
from winnow.tasks.spec.stored_spec import grouping_of

Z = 1.959963984540054
"""The 97.5% quantile of the normal distribution, for intervals with 95% confidence."""


def tags_of(campaign: CampaignRecord) -> list[str]:
    """The tag fields of a campaign's examples.

    If the campaign compares groups, the field that defines them comes first.
    """
    groups = grouping_of(campaign.spec)
    by = [] if groups is None else [groups.by]
    return list(dict.fromkeys([*by, *campaign.execution.get("tags", [])]))


def tags(look: Look, *, candidate: str | None = None, counts: TagCounts | None = None) -> list[Row]:
    """One row per tag, value of the tag, and candidate.

    Tags and candidates are in the order of the spec, values in the order of occurrence. `examples` is the
    number of examples in the dataset with the value. `lower` and `upper` are Wilson's interval at 95%, as if
    the scored examples were a random sample; they are not certified. `worst` marks the values of each tag in
    which a candidate has its lowest mean; no value is marked if all means are equal.

    Args:
        look: The campaign.
        candidate: The only candidate whose comparisons are read; None for all candidates.
        counts: Counts of an earlier call, or None.
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
            **_tally_row(found[name][tag, value]),
            "worst": value in worst.get((tag, name), ()),
        }
        for tag, value in sorted(sizes, key=lambda each: wanted.index(each[0]))
        for name in names
    ]


def metrics(look: Look) -> list[Row]:
    """The mean of each metric for each candidate, with a plain interval as for tags.

    The intervals are not certified.
    """
    return [
        {**row, **_interval(row["mean"], row["scored"])} for row in metric_means(look.session, look.record.id)
    ]


def wilson(mean: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval for the mean of n values in [0, 1].

    The variance of such values is at most that of values 0 and 1, for which the interval is derived.
    """
    shrunk = 1.0 + Z * Z / n
    centre = (mean + Z * Z / (2 * n)) / shrunk
    half = Z / shrunk * sqrt(mean * (1.0 - mean) / n + Z * Z / (4 * n * n))
    # At the means 0 and 1 one end is exact; this removes its rounding error.
    lower = max(0.0, centre - half) if mean > 0.0 else 0.0
    return lower, min(1.0, centre + half) if mean < 1.0 else 1.0


def _tally_row(tally: Tally) -> Row:
    counts = {"scored": tally.scored, "unscored": tally.unscored}
    mean = min(1.0, tally.total / tally.scored) if tally.scored else None
    return {**counts, "mean": mean, **_interval(mean, tally.scored)}


def _interval(mean: float | None, n: int) -> Row:
    lower, upper = (None, None) if mean is None else wilson(mean, n)
    return {"lower": lower, "upper": upper}


def _worst(found: Mapping[str, Tallies]) -> dict[tuple[str, str], Set[str]]:
    """The values with the lowest mean, by tag and candidate.

    Tags without differences between means are missing.
    """
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
"""Number of outputs that the column `cost` is for."""

NOISE = 2.0
"""Number of standard errors of a difference of means up to which the means count as equal."""


def pareto(look: Look) -> list[Row]:
    """One row per candidate with outputs, best estimate first.

    `tokens`, `seconds`, `latency` and `cost` are means per output (`cost`: per thousand outputs), each
    followed by its standard deviation. They are input and output tokens; engine time, which outputs of one
    batch share; the time from a request to its answer, null if no engine reported it; and the price, null if
    a price is unknown.

    `pareto` is true if the candidate is in question and no other candidate in question beats it. A candidate
    beats another one if its estimate is at least as high, it is not clearly more expensive (in tokens if a
    price is unknown), it is not clearly slower (in seconds if a latency is unknown), and it is better in one
    of the three. Nothing of this is proven.
    """
    texts = texts_by_candidate(look.session, look.record.id)
    reports = bool(reporting_models(look.record.spec))
    reported = reported_by_candidate(look.session, look.record.id) if reports else {}
    rows = [
        _row(look.record, row, texts[row["candidate"]], reported.get(row["candidate"]))
        for row in leaderboard(look.session, look.record.id)
        if row["candidate"] in texts
    ]
    out = names_out(look.session, look.record.id)
    by = "tokens" if any(row["cost"] is None for row in rows) else "cost"
    time = "seconds" if any(row["latency"] is None for row in rows) else "latency"
    left = [row for row in rows if row["estimate"] is not None and row["candidate"] not in out]
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
    """Sign of the difference of two candidates' means; 0 if it is within their noise."""
    difference: float = one[name] - other[name]
    error = math.hypot(*(row[f"{name}_sd"] / math.sqrt(row["texts"]) for row in (one, other)))
    if abs(difference) <= NOISE * error:
        return 0
    return 1 if difference > 0 else -1
