"""Check whether last decisions and judges' calls follow from stored rows.

A selector without history is created from stored data and observes all rounds, as in `winnow resume`. Then
its decision is compared with the stored one. Judges are also created again, and their calls are compared with
the stored replies. This reads no file and runs no third-party code.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Never, cast

from sqlalchemy.orm import Session

from winnow.algorithms.errors import AlgorithmError
from winnow.algorithms.protocols import Selector
from winnow.algorithms.registry import rules_version
from winnow.storage.admin.recorded_comparisons import RecordedJudgment, RecordedText
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import traits_of
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records import stream_batches
from winnow.storage.records.campaigns import UNREADABLE
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord, NewDecision
from winnow.storage.text import storable
from winnow.tasks.campaign.budget import Allowance
from winnow.tasks.campaign.kept_rules import kept_rules_of
from winnow.tasks.campaign.look import Look
from winnow.tasks.campaign.planned_outputs import PlannedGeneration
from winnow.tasks.campaign.replay import retold
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.stored_values import stored_dataset, stored_spec
from winnow.tasks.candidates.candidates import Candidate, StoredCandidate, candidate_names
from winnow.tasks.candidates.text_rules import rules_of
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import JudgeCall, JudgeReply, Reply
from winnow.tasks.judges.asking.exchange import Exchange
from winnow.tasks.judges.protocol import Duel, Judge, Sample
from winnow.tasks.judges.registry import create_judge, create_pair_judge, judge_code, pair_judge_code
from winnow.tasks.plugins.allowed_code import NotAllowed
from winnow.tasks.rounds.judge_calls import plan_judge_call
from winnow.tasks.rounds.record import as_record, believed
from winnow.tasks.setup.check import class_of
from winnow.tasks.setup.open_campaign import SELECTOR_RULES
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.judge_tree import judge_tree, judging_fingerprints
from winnow.tasks.spec.selector_traits import PLANS_BY_BUDGET

MOST_CALLS = 10_000
"""Maximum number of calls of a judge for one duel; a judge that makes more is assumed to be endless."""


class Unchecked(Exception):
    """A part of a campaign could not be checked; the message is the reason."""


class JudgesAgain:
    """The judges of one campaign; each is created at most once."""

    def __init__(self, campaign: CampaignRecord) -> None:
        self._campaign = campaign
        self._fingerprints = judging_fingerprints(campaign.spec)
        self._made: dict[str | None, Judge[Never] | Unchecked] = {}  # by metric, None for the outcome

    def has_metric(self, metric: str) -> bool:
        """Whether the campaign has a metric of this name."""
        return any(each["name"] == metric for each in self._campaign.spec.get("metrics", ()))

    def is_of_plugin(self, metric: str | None) -> bool:
        """Whether a plug-in is part of the judge of a metric, or of the outcome if None."""
        of_metrics = {each["name"]: each["judge"] for each in self._campaign.spec.get("metrics") or ()}
        judge = self._campaign.spec["judge"] if metric is None else of_metrics.get(metric)
        return judge is not None and any(each.is_plugin for each in judge_tree(judge).walk())

    def wrong_of(
        self, metric: str | None, subject: Sample | Duel, left: list[RecordedJudgment]
    ) -> Iterator[str]:
        """Yield the faults of the judgments of one output or duel.

        Args:
            metric: The metric of the judgments; None for the outcome.
            subject: The output or duel.
            left: Stored judgments; those that belong to the subject's calls are removed.

        Raises:
            Unchecked: The judge cannot be created, has changed, or needs calls that are not stored.
        """
        judge = cast("Judge[Sample | Duel]", self._judge_of(metric))  # the subject is of its type
        exchange = Exchange[Sample | Duel]({})
        exchange.begin([judge], [subject])
        while (wanted := _wanted(exchange)) and len(exchange.replies) < MOST_CALLS:
            for call in wanted:
                alike = [each for each in left if _place(each) == _place(call)]
                if not alike:
                    raise Unchecked(f"judge {call.judge} makes a call that is not stored")
                judgment = min(alike, key=lambda each: not _answers(each, call))
                left.remove(judgment)
                if (wrong := self._wrong_reply(judgment, call)) is not None:
                    yield wrong
                exchange.take({call: _as_reply(judgment)})

    def _wrong_reply(self, judgment: RecordedJudgment, call: JudgeCall) -> str | None:
        if judgment.reply is None:
            return None if judgment.reason else f"the reply of judge {judgment.judge} is missing"
        rules = rules_of(self._campaign.spec)
        planned = plan_judge_call(self._fingerprints, call, self._campaign.seed, rules=rules)
        return mismatch(judgment.reply, planned, f"the reply of judge {judgment.judge}")

    def _judge_of(self, metric: str | None) -> Judge[Never]:
        if metric not in self._made:
            self._made[metric] = self._made_again(metric)
        judge = self._made[metric]
        if isinstance(judge, Unchecked):
            raise judge
        return judge

    def _made_again(self, metric: str | None) -> Judge[Never] | Unchecked:
        known, whose = self._campaign.spec, "its judge" if metric is None else f"the judge of metric {metric}"
        begun_with = dict(known.get("judge_identity") or {})
        begun_with.pop("fingerprints", None)
        if metric is not None:
            begun_with = {"code": known.get("metric_code", {}).get(metric)}
        judge: Judge[Never]
        try:
            whole = stored_spec(self._campaign, storage="")
            of_metrics = {each.name: each.judge for each in whole.metrics}
            spec = whole.judge if metric is None else of_metrics[metric]
            if traits_of(self._campaign.objective).compares_pairs:
                judge, code = create_pair_judge(spec.type, **spec.params), pair_judge_code(spec.type)
            else:
                judge, code = create_judge(spec.type, **spec.params), judge_code(spec.type, **spec.params)
        except (WinnowError, KeyError, ValueError) as error:
            return Unchecked(f"{whose} cannot be created: {said(error)}")
        if begun_with != {"code": code, **judge.identity}:
            return Unchecked(f"{whose} differs from the one that the campaign began with")
        return judge


def mismatch(text: RecordedText, planned: PlannedGeneration, which: str) -> str | None:
    """Difference between a stored output and the planned one, in words.

    None if they agree.
    """
    if text.prompt != storable(planned.request.prompt):
        return f"{which} is the answer to another prompt"
    if text.request_key != planned.key:
        return f"{which} was generated with another model, sampling or seed"
    return None


def said(error: Exception) -> str:
    """Message of an error, as a part of a sentence."""
    return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)


def _wanted(exchange: Exchange[Sample | Duel]) -> Sequence[JudgeCall]:
    """The calls that a judge needs, unless code would have to run without permission."""
    try:
        return exchange.next_calls()
    except NotAllowed as error:
        raise Unchecked(f"the calls of its judge are unknown: {error}") from error


def _as_reply(judgment: RecordedJudgment) -> Reply:
    if (reply := judgment.reply) is None:
        return GenerationFailure(reason=str(judgment.reason), detail="")
    return JudgeReply(
        text=reply.text, choice_logprobs=reply.choice_logprobs, finish_reason=reply.finish_reason
    )


def _place(judgment: RecordedJudgment | JudgeCall) -> tuple[str, str, int, int]:
    return judgment.judge, judgment.presentation_order, judgment.repeat, judgment.attempt


def _answers(judgment: RecordedJudgment, call: JudgeCall) -> bool:
    """Whether a stored reply is to the prompt of a call.

    Several parts of a judge can use the same model.
    """
    return judgment.reply is not None and judgment.reply.prompt == storable(call.prompt)


BY_PLAN = frozenset({"winner", "status of candidates", "claim", "end", "ranking"})
"""Parts of a decision that can depend on a plan made from the budget.
Any resume can change the budget, and only the latest budget is stored.
"""

TOLERANCE = 1e-6
"""Relative or absolute tolerance, for other processors and releases of NumPy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFinding:
    """A stored decision that differs from its selector's, or a reason for no check."""

    campaign: str
    sentence: str
    is_wrong: bool
    """Whether the decision is wrong; False if it could not be checked."""
    is_older: bool
    """Whether the campaign began before versions of selector rules were stored."""

    def __str__(self) -> str:
        return f"the last decision of campaign '{self.campaign}' {self.sentence}"


def decision_findings(session: Session) -> Iterator[DecisionFinding]:
    """Yield the last decisions that do not follow from stored outcomes.

    Decisions that could not be checked are also yielded.
    """
    for campaign in campaign_records.campaigns(session):
        begun_with: str | None = None
        try:
            begun_with = campaign.versions.get(SELECTOR_RULES)
            wrong = _wrong(Look(session, campaign), begun_with)
            if wrong is None:
                continue
            sentence = f"does not follow from the stored outcomes; it differs in: {wrong}"
            is_wrong = begun_with is not None
        except Unchecked as why:
            sentence, is_wrong = f"could not be checked: {why}", False
        except (WinnowError, AlgorithmError, StorageError, *UNREADABLE) as error:
            sentence, is_wrong = f"could not be checked: {said(error)}", False
        yield DecisionFinding(
            campaign=campaign.name, sentence=sentence, is_wrong=is_wrong, is_older=begun_with is None
        )


def _wrong(look: Look, begun_with: str | None) -> str | None:
    """Difference between a campaign's last decision and its selector's, in words.

    None if they agree.

    Raises:
        Unchecked: The rounds cannot be replayed by the rules and the budget of that time.
    """
    stored = outcome_records.decision_as_stored(look.session, look.record.id)
    if stored is None:
        return None
    name = look.record.spec["selector"]["name"]
    if (rules := rules_version(name)) is None or look.record.spec.get("selector_code") is not None:
        raise Unchecked(f"its selector {name} is third-party")
    if begun_with not in (None, rules):
        raise Unchecked(f"this release decides by other rules (version {rules}, not {begun_with})")
    dataset = stored_dataset(look.record, stream_batches.each_example(look.session, look.record.id))
    checked = _resolved(look, dataset)
    selector = _told_again(look, checked)
    # Candidates are numbered by arm, because their names are looked up by arm.
    decision = as_record(believed(selector, look.record), range(len(checked.candidates)))
    found, _ = stored
    wrong = _differing(found, decision, [each.name for each in checked.candidates])
    if not wrong:
        return None
    is_planned = name in PLANS_BY_BUDGET or checked.spec.holdout is not None
    if {found.reason, decision.reason} == {"budget", "running"} or (is_planned and {*wrong} <= BY_PLAN):
        raise Unchecked("its budget may have been different at that time")
    return wrong[0]


def _told_again(look: Look, checked: ResolvedCampaign) -> Selector:
    """Create a selector that has observed every finished round.

    Its limit is the campaign's own limit at that time.
    """
    allowance = Allowance(checked.spec.own_budget if checked.counts_pairs else None)
    for asked, answered in round_records.answered_by_round(look.session, look.record.id):
        allowance.add(asked, answered)
    selector = checked.create_selector(allowance.limit)
    for _ in retold(look.session, look.record, checked, selector):
        pass
    return selector


def _resolved(look: Look, dataset: Dataset) -> ResolvedCampaign:
    """The parts of a campaign that its selector depends on, from stored data only.

    The judge is missing.
    """
    spec = stored_spec(look.record, storage="")
    candidates = _candidates(look, spec, dataset)
    found_by = class_of(spec.objective)
    fields: JsonObject = {"judge": None} | found_by.stored_fields(look, spec, dataset, candidates)
    first_rounds = campaign_records.first_rounds(look.session, look.record.id)
    return found_by(
        spec=spec,
        dataset=dataset,
        candidates=candidates,
        first_rounds=first_rounds,
        kept_rules=kept_rules_of(look.record.spec, found_by.RULES),
        **fields,
    )


def _candidates(look: Look, spec: CampaignSpec, dataset: Dataset) -> list[Candidate]:
    choices = {each.joined: each for each in candidate_names(spec)}
    found = []
    for record in campaign_records.candidates(look.session, look.record.id):
        if record.name not in choices:
            raise Unchecked(f"its definition has no candidate {record.name}")
        known = StoredCandidate.from_record(record, dataset.field_names)
        found.append(
            Candidate(
                names=choices[record.name],
                model=known.model,
                fingerprint=known.fingerprint,
                template=known.template,
                prompt_record=record.prompt,
                guardrail=known.guardrail,
                sampling=known.sampling,
            )
        )
    return found


def _differing(stored: DecisionRecord, decision: NewDecision, names: Sequence[str]) -> list[str]:
    """Names of the parts of a stored decision that differ from the recomputed one."""
    best = None if decision.best_candidate_id is None else names[decision.best_candidate_id]
    n_known = len(decision.status)
    parts: dict[str, tuple[object, object]] = {
        "winner": (stored.best, best),
        "status of candidates": (stored.status[:n_known], decision.status),
        "claim": (stored.claim, decision.claim),
        "end": ([stored.stop, stored.reason], [decision.stop, decision.reason]),
        "estimates": (stored.estimates[:n_known], decision.estimates),
        "lower bounds": (stored.lower[:n_known], decision.lower),
        "upper bounds": (stored.upper[:n_known], decision.upper),
        "ranking": (stored.ranking, decision.ranking),
        "differences": (stored.differences, decision.differences),
        "bets": (stored.bets, decision.bets),
    }
    return [part for part, (one, other) in parts.items() if not _are_alike(one, other)]


def _are_alike(stored: object, decided: object) -> bool:
    """Whether two JSON values are equal, with numbers compared up to `TOLERANCE`."""
    if isinstance(stored, Mapping) and isinstance(decided, Mapping):
        return stored.keys() == decided.keys() and all(
            _are_alike(value, decided[key]) for key, value in stored.items()
        )
    if isinstance(stored, list | tuple) and isinstance(decided, list | tuple):
        return len(stored) == len(decided) and all(map(_are_alike, stored, decided))
    if isinstance(stored, float) and isinstance(decided, int | float):
        return math.isclose(stored, decided, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return stored == decided
