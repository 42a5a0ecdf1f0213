"""Campaigns over time, of one schedule or on the same data: winners and costs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.queries import history as history_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.earlier_campaigns import serves_another
from winnow.tasks.answer.model import Answer
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.campaign.example_seed import CONSTRAINED, made_of
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask
from winnow.tasks.spec.selector_traits import BY_MODEL

COLUMNS = (
    "campaign",
    "created_at",
    "state",
    "outcome",
    "claim",
    "best",
    "chosen",
    "estimate",
    "lower",
    "upper",
    "changed",
    "comparisons",
    "generated",
    "reused",
    "differs_in",
)


def campaigns(session: Session) -> list[Row]:
    """The state of every campaign of the database, oldest first, and why it ended."""
    return [
        _as_it_stands(
            row, campaign_status(Look(session, campaign_records.get_campaign(session, row["campaign"])))
        )
        for row in history_views.campaigns(session)
    ]


def history(look: Look) -> list[Row]:
    """Campaigns with the same dataset and objective, this one included, oldest first.

    `best` is the leader, even without a winner. `chosen` is the cheapest good enough candidate, if it is
    searched for and differs from the best; then it is the winner. `changed` and `differs_in` are as in
    `series_rows`, for winners only.
    """
    since, rows = _Since(look.session), []
    for row in history_views.history(look.session, look.record.id):
        record = campaign_records.get_campaign(look.session, row["campaign"])
        status = campaign_status(look.at(record))
        rows.append({**_as_it_stands(row, status), **since.told(status, record)})
    return rows


def _as_it_stands(row: Row, status: CampaignStatus) -> Row:
    """Add the chosen candidate, whether the campaign has ended, and why, to a row.

    The selector's decision does not contain limits other than its own budget.
    """
    has_ended = None if row["stop"] is None else status.state == "ended"
    reason = row["reason"] and status.answer.reason
    return {**row, "chosen": status.answer.chosen, "stop": has_ended, "reason": reason}


def is_another(before: Answer, now: Answer) -> bool:
    """Whether the winners of two answers differ; False if an answer has no winner.

    A candidate tied for first place counts as a winner in both answers. With `top_m`, winners do not differ
    if those of one answer are all among those of the other.
    """
    then, today = before.winners, now.winners
    if max(before.top_m, now.top_m) == 1:
        return bool(then and today) and not then & today
    return bool(then and today) and not (then <= today or today <= then)


def previous_winner(look: Look) -> CampaignStatus | None:
    """The earlier campaign of a schedule whose winner is compared with this one's.

    None without such a campaign.
    """
    if look.record.series is None:
        return None
    earlier = [
        record
        for record in campaign_records.campaigns(look.session)
        if record.series == look.record.series
        and (record.created_at, record.id) < (look.record.created_at, look.record.id)
    ]
    return _winner_after(look.session, earlier)


def _winner_after(session: Session, earlier: Sequence[CampaignRecord]) -> CampaignStatus | None:
    """The campaign whose winner is current after the given ones; None without one.

    Args:
        session: An open session.
        earlier: The campaigns, oldest first.
    """
    ended: list[CampaignStatus] = []
    for record in reversed(earlier):
        ended.append(campaign_status(Look(session, record)))
        if _names_all(ended[-1].answer):
            break
    return reduce(whose_winner_stands, reversed(ended), None)


def whose_winner_stands(before: CampaignStatus | None, now: CampaignStatus) -> CampaignStatus | None:
    """The campaign with which the next one is compared.

    It is `now`, or `before` if its winner is still current. A candidate tied with the previous winner does
    not replace it: after A, and then A and B tied, there is a new winner if B wins alone. None without a
    winner.
    """
    winners = now.answer.winners
    is_shared = before is not None and before.answer.winners < winners and not _names_all(now.answer)
    return before if is_shared or not winners else now


def _names_all(answer: Answer) -> bool:
    """Whether an answer has winners, and not more of them than were searched for."""
    return 0 < len(answer.winners) <= answer.top_m


OF_CANDIDATES = (
    "names",
    "prompts",
    "guardrails",
    "generate_configs",
    "output_type",
    "choices",
    "target_delimiter",
    "few_shot_examples",
    "model_fingerprints",
    "models_asked_as",
    "served",
)
"""Fields of a stored spec that define candidates or their names."""

ASKED_FOR = ("certify", "selector", "selector_code", "stopping", "holdout", "fail_on_error")
"""Fields of a stored spec that define the question, besides those that scores depend on."""

ASKED_BY: Mapping[str, Sequence[str]] = {
    "the objective": ("objective",),
    "the data": ("dataset_fingerprint",),
    "the candidates": OF_CANDIDATES,
    "the judge": ("judge", "judge_identity", "judge_asked_as", "samples"),
    "groups": ("groups",),
    "constraints": (*CONSTRAINED, "metrics", "metric_fingerprints", "metrics_asked_as"),
    "what is certified": ("certify",),
    "the selector": ("selector", "selector_code"),
    "when a candidate is dropped": ("fail_on_error",),
    "the history": ("history_fingerprint",),
    "delta or epsilon": ("stopping",),
    "the budget": ("budget",),
    "what is held out": ("holdout",),
    "the seed": ("seed",),
}
"""Changes that can change the winner although no candidate's performance changed, with their fields."""


def differs_in(session: Session, before: CampaignRecord, now: CampaignRecord) -> list[str]:
    """Differences between two campaigns of a schedule that change the question."""
    then, today = _asked(session, before), _asked(session, now)
    found = [
        words for words, keys in ASKED_BY.items() if any(then.get(key) != today.get(key) for key in keys)
    ]
    return [*found, *(["what a server serves"] if serves_another(Look(session, before), now) else [])]


def edited_since(session: Session, before: CampaignStatus | None, now: CampaignRecord) -> list[str]:
    """Differences, as in `differs_in`, to the campaign of the previous winner.

    Empty without a previous winner.
    """
    if before is None:
        return []
    return differs_in(session, campaign_records.get_campaign(session, before.name), now)


def _asked(session: Session, campaign: CampaignRecord) -> dict[str, object]:
    spec = campaign.spec
    # Without an error probability, the budget determines when there is a winner.
    budget = {"budget": campaign.execution.get("budget")} if spec["stopping"]["delta"] is None else {}
    return {
        **made_of(campaign),
        **budget,
        "objective": campaign.objective,
        "names": sorted(campaign_records.candidate_names(session, campaign.id)),
        **{key: spec.get(key) for key in ASKED_FOR},
        "seed": campaign.seed,
    }


class _Since:
    """Changes since the last winner, from one campaign to the next."""

    def __init__(self, session: Session, earlier: Sequence[CampaignRecord] = ()) -> None:
        """Start after the given campaigns, oldest first."""
        self._session = session
        self._before = _winner_after(session, earlier)

    def told(self, status: CampaignStatus, campaign: CampaignRecord) -> Row:
        """`changed` and `differs_in` of the next campaign.

        Both are null if it or the earlier ones have no winner; `differs_in` is also null if nothing differs.
        """
        before, self._before = self._before, whose_winner_stands(self._before, status)
        winners = status.answer.winners
        if before is None or not winners:
            return {"changed": None, "differs_in": None}
        differing = edited_since(self._session, before, campaign)
        return {
            "changed": is_another(before.answer, status.answer),
            "differs_in": ", ".join(differing) or None,
        }


def series_rows(session: Session, series: str) -> list[dict[str, object]]:
    """One row per campaign of a series, oldest first.

    `changed` is whether the winner differs from that of the last earlier campaign with a winner (see
    `whose_winner_stands`). It is null without such a comparison, for example if the question is open.
    `differs_in` lists how the two campaigns differ, because a schedule reads its file again each time.
    `generated` counts new outputs, `reused` those of earlier campaigns.

    Raises:
        SeriesNotFound: The series does not exist; lists the existing ones.
    """
    rows: list[dict[str, object]] = []
    since = _Since(session)
    for row in history_views.series(session, series):
        record = campaign_records.get_campaign(session, row["campaign"])
        status = campaign_status(Look(session, record))
        ended = {
            **since.told(status, record),
            "chosen": status.answer.chosen,
            "state": status.state,
            "outcome": status.answer.outcome,
            "claim": status.answer.claim.kind,
        }
        made = {"generated": status.totals["generations"], "reused": status.totals["reused"]}
        standing = {**row, **ended, **made}
        rows.append({name: standing[name] for name in COLUMNS})
    return rows


ESTIMATED_BY: Mapping[str, str] = {
    "objective": "the objective",
    "judge": "the judge",
    "judge_identity": "the judge's code or models",
    "samples": "how several outputs give one score",
    "groups": "groups of examples",
    "certify": "the definition of a loss",
}
"""Fields that define what a campaign's estimates measure, and their names in words."""

LOSSES = ("baseline", "autoevaluator")
"""Fields of `certify` that losses depend on."""


def other_numbers(campaigns: Iterable[CampaignRecord]) -> list[str]:
    """Differences that make campaigns' estimates measure different things.

    Empty if estimates are comparable; their examples can still differ.
    """
    found = [_estimated_by(each) for each in campaigns]
    return [words for key, words in ESTIMATED_BY.items() if len({each[key] for each in found}) > 1]


def _estimated_by(campaign: CampaignRecord) -> dict[str, str]:
    """A campaign's values of the fields in `ESTIMATED_BY`, as texts."""
    values: dict[str, object] = {key: campaign.spec.get(key) for key in ESTIMATED_BY}
    values["objective"] = campaign.objective
    if section := campaign.spec.get("certify"):
        by_model = campaign.spec["selector"]["name"] == BY_MODEL
        values["certify"] = [by_model, *(section.get(part) for part in LOSSES)]
    return {key: json.dumps(value, sort_keys=True, default=str) for key, value in values.items()}


MOST_CAMPAIGNS = 60
"""Maximum number of a series' campaigns that are shown, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Campaigns with one question, over time."""

    title: str
    campaigns: Sequence[CampaignRecord]
    """The campaigns, oldest first."""

    @property
    def are_repeated(self) -> bool:
        """Whether all campaigns belong to one schedule."""
        schedules = {each.series for each in self.campaigns}
        return len(schedules) == 1 and None not in schedules


def all_series(session: Session) -> list[Series]:
    """The schedules of a database, then groups of campaigns on the same data.

    A group has at least two campaigns with one objective, and all of them estimate the same quantity:
    campaigns with another judge, for example, or that compare groups of examples, are in another group. A
    schedule's file can change over time.
    """
    records = campaign_records.campaigns(session)
    scheduled: dict[str, list[CampaignRecord]] = {}
    alike: dict[tuple[object, ...], list[CampaignRecord]] = {}
    for record in records:
        if record.series is not None:
            scheduled.setdefault(record.series, []).append(record)
        alike.setdefault((record.dataset_id, *_estimated_by(record).values()), []).append(record)
    found = [Series(title=f"schedule {name}", campaigns=some) for name, some in scheduled.items()]
    found += [
        Series(title=f"{some[-1].objective} on the data of {some[-1].name}", campaigns=some)
        for some in alike.values()
        if len(some) > 1 and len({record.series for record in some} - {None}) != 1
    ]
    return found


def over_time(session: Session, series: Series) -> list[Row]:
    """One row per campaign of a series, oldest first: how it ended, and what it cost.

    `changed` and `differs_in` are as in `series_rows`: about winners, and null if the question was open.
    """
    rows: list[Row] = []
    since = _Since(session, series.campaigns[:-MOST_CAMPAIGNS])
    for record in series.campaigns[-MOST_CAMPAIGNS:]:
        status = campaign_status(Look(session, record))
        answer, best = status.answer, status.answer.of_best
        rows.append(
            {
                "campaign": record.name,
                "created_at": record.created_at,
                "state": headline(answer, status.state),
                "best": best and best.name,
                "chosen": answer.chosen,
                "estimate": best and best.estimate,
                "lower": best and best.lower,
                "upper": best and best.upper,
                **since.told(status, record),
                "comparisons": status.totals["answered"],
                "generated": status.totals["generations"],
                "reused": status.totals["reused"],
                "tokens": status.totals["input_tokens"] + status.totals["output_tokens"],
                "engine_seconds": status.totals["engine_seconds"],
                "load_seconds": status.totals["load_seconds"],
            }
        )
    return rows


def tracks(session: Session, series: Series, names: Sequence[str]) -> dict[str, list[Row]]:
    """Estimates of some candidates in the campaigns of a series, oldest first."""
    found: dict[str, list[Row]] = {name: [] for name in names}
    for record in series.campaigns[-MOST_CAMPAIGNS:]:
        for row in ask(Look(session, record), "leaderboard"):
            if row["candidate"] in found and row["estimate"] is not None:
                kept = {key: row[key] for key in ("estimate", "lower", "upper")}
                found[row["candidate"]].append({"campaign": record.name, **kept})
    return found
