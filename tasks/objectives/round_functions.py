"""Functions for the steps of a round that depend on the objective.

A judge that fails on everything ends the campaign, because all further outputs would be wasted. If it fails
only on some outputs, these are unscored. If it fails on all outputs of a candidate, that candidate is
dropped, as `fail_on_error` defines.

A judge counts as broken if it has never succeeded, or if it has failed so often in a row that no single
candidate's outputs can be the cause. If its failures count as losses (certify), one round of failures is
enough, because they could refute the candidate that is tested first. The round that shows this is not
recorded. A resumed run then judges its outputs again and generates none twice.
"""

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.queries import unscored as unscored_views
from winnow.storage.records.record_types import EQUAL_OUTPUTS, NewComparison, RoundRecord
from winnow.tasks.campaign.contacts import OUT_OF_REACH
from winnow.tasks.campaign.planned_outputs import GenerationBatch, TextOrFailure
from winnow.tasks.campaign.session import CampaignSession, EarlyTexts
from winnow.tasks.engines.known_providers import ELSEWHERE
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.asking.calls import TOO_FEW_JUDGES
from winnow.tasks.judges.protocol import JUDGE_FAILED
from winnow.tasks.objectives.protocol import steps_of
from winnow.tasks.plugins.entry_points import remedy
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.spec.judge_tree import HUMAN
from winnow.tasks.spec.stored_spec import fork_command

if TYPE_CHECKING:
    from winnow.tasks.objectives.human.annotation_tasks import RoundAnnotators

ANNOTATORS = "winnow.tasks.objectives.human.annotation_tasks:RoundAnnotators"
"""Import path of the class, so that campaigns without annotators do not import it."""


def annotators_of(campaign: CampaignSession) -> "RoundAnnotators | None":
    """The annotators of a campaign; None without a human judge."""
    if campaign.checked.spec.judge.type != HUMAN:
        return None
    found: RoundAnnotators = object_at(ANNOTATORS)(campaign)
    return found


def can_begin(campaign: CampaignSession) -> bool:
    """Whether a round can be generated now, so that loading models is worthwhile."""
    round_ = plan_round(campaign)
    return round_ is not None and not awaits_humans(campaign, round_)


def awaits_humans(campaign: CampaignSession, round_: RoundRecord) -> bool:
    """Whether a planned round has to wait for judgments or labels of humans."""
    if (annotators := annotators_of(campaign)) is not None:
        return annotators.lack()
    return steps_of(campaign.checked).lacks_labels(campaign, round_)


def generate_round(campaign: CampaignSession, round_: RoundRecord) -> GenerationBatch:
    """Generate and store all outputs of a round; a missing output has a reason.

    See `have_texts`.

    Raises:
        EngineDied, EngineTimeout: Transient; committed outputs stay.
        LeaseLost: Another process took the campaign over.
    """
    begun, campaign.head_start = campaign.head_start, None
    if begun is not None and begun.round_id == round_.id:
        return begun.texts()
    return steps_of(campaign.checked).generate(campaign, round_)


def begin_texts(campaign: CampaignSession, round_: RoundRecord) -> EarlyTexts:
    """Start generating a round's outputs in the background.

    `generate_round` waits for them.
    """
    campaign.head_start = EarlyTexts(
        round_.id, partial(steps_of(campaign.checked).generate, campaign, round_)
    )
    return campaign.head_start


def judge_round(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch
) -> list[NewComparison]:
    """Return one comparison per planned pair or duel, in planned order.

    An unscored comparison has a reason.

    Raises:
        EngineDied, EngineTimeout: Transient, with judge models; committed replies stay.
        JudgeBroken: A third-party judge fails repeatedly.
        LabelMissing: A label was removed; `awaits_humans` checks before a round continues.
        NoServer: No server of the round is reachable, or one of several judges is not, or a model that every
            loss or constraint needs is not; or servers refuse all requests.
        LeaseLost: Another process took the campaign over.
    """
    annotators = annotators_of(campaign)
    checked = campaign.checked if annotators is None else annotators.informed(round_, texts)
    comparisons = steps_of(checked).judge(campaign, checked, round_, texts)
    require_a_server(campaign, texts, comparisons)
    require_every_judge(campaign, comparisons)
    require_a_taker(campaign, comparisons)
    require_what_losses_need(campaign, texts)
    require_what_constraints_need(campaign, comparisons)
    require_sound_judge(campaign, comparisons)
    return comparisons


class NoServer(WinnowError):
    """No server is reachable or accepts requests, for which no candidate is at fault."""


def require_a_server(
    campaign: CampaignSession, texts: GenerationBatch, comparisons: Sequence[NewComparison]
) -> None:
    """Refuse to record a round if no server is reachable, or no model remains.

    Otherwise its candidates would be dropped one by one, and the last remaining one would win. Stored outputs
    stay, and the rest is requested when the campaign continues. If another model answers, unreachable servers
    only cause their own candidates to be dropped; so do local engines that never answered.

    Raises:
        NoServer: No server is reachable or no model remains; gives the known cause.
    """
    of_texts = any(_is_lost(each) for each in texts)
    of_replies = any(each.is_answered and each.reason in OUT_OF_REACH for each in comparisons)
    for of_judges, is_lost, what_for in ((False, of_texts, "for texts"), (True, of_replies, "to judge")):
        models = campaign.checked.deciding_models if of_judges else _answering(campaign, comparisons)
        gone = _given_up(campaign, models) if all(each.provider in ELSEWHERE for each in models) else []
        if gone and is_lost:
            so_far = (
                f"no server of this round {what_for} is reachable"
                if campaign.allowance.answered
                else "no comparison has an outcome yet"
            )
            raise NoServer(
                f"{gone[0]}; {so_far}, and this round is not recorded: start the server, or correct its "
                "model_base_url or its key, then resume"
            )
    is_lost = of_texts or of_replies
    if is_lost and campaign.allowance.answered and (gone := _given_up(campaign, _in_race(campaign))):
        raise NoServer(
            f"{gone[0]}; no model of a remaining candidate is reachable, and this round is not recorded: "
            "fix the cause, then resume"
        )


def _is_lost(text: TextOrFailure) -> bool:
    return isinstance(text, GenerationFailure) and text.reason in OUT_OF_REACH


def require_every_judge(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> None:
    """Refuse to record a round that only some of several judges score.

    This happens if a judge's server is unreachable. Otherwise verdicts of all judges on earlier outputs would
    be compared with those of the remaining judges, and a score would depend on the time of its request.

    Raises:
        NoServer: A judge is unreachable; gives the cause.
    """
    alone = [
        judgment
        for each in comparisons
        if each.outcome is not None
        for judgment in each.judgments
        if judgment.metric is None and judgment.reason in OUT_OF_REACH
    ]
    models = campaign.checked.deciding_models if alone else ()
    for failure in filter(None, map(campaign.engines.failure, models)):
        raise NoServer(
            f"{failure.detail}; the other judges would score alone from here on, so this round is not "
            "recorded: fix the cause, then resume; or remove it from the judge, and start a new campaign: "
            f"{fork_command(campaign.record.spec)}"
        )


def _given_up(campaign: CampaignSession, models: Sequence[ModelRef]) -> list[str]:
    """Reasons why all of the given models are unreachable; empty if one is reachable."""
    failures = [campaign.engines.failure(each) for each in models]
    found = [each.detail for each in failures if each is not None]
    return found if len(found) == len(failures) else []


def _in_race(campaign: CampaignSession) -> list[ModelRef]:
    """Models of all candidates that were not dropped."""
    statuses = enumerate(campaign.selector.decision().status)
    dropped = {arm for arm, status in statuses if status == "dropped"}
    return [each.model for arm, each in enumerate(campaign.checked.candidates) if arm not in dropped]


def _answering(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> list[ModelRef]:
    """Models of the compared candidates."""
    compared = {id_ for each in comparisons for id_ in (each.candidate_a_id, each.candidate_b_id)}
    known = zip(campaign.checked.candidates, campaign.candidate_ids, strict=True)
    return [candidate.model for candidate, id_ in known if id_ in compared]


REFUSALS = frozenset({"refused", TOO_FEW_JUDGES})
"""Reasons of comparisons whose outputs, or all of whose judgments, a server refused."""


def require_a_taker(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> None:
    """Refuse to record a round whose servers refuse all requests, including canaries.

    The cause is then the form of the requests, such as an unsupported parameter, not a prompt. The same holds
    for the servers of judges.

    Raises:
        NoServer: The servers refuse all requests; quotes the message of one of them.
    """
    if campaign.allowance.answered:
        return
    for of_judges, where in (
        (False, "model_args or generate_configs"),
        (True, "the settings that the judge sends"),
    ):
        models = campaign.checked.deciding_models if of_judges else _answering(campaign, comparisons)
        words = [campaign.contacts.refusal(model.name) for model in models]
        refused = [each for each in comparisons if each.is_answered is of_judges and each.reason in REFUSALS]
        if words and None not in words and len(refused) == len(comparisons):
            raise _takes_nothing(campaign, models[0], where)


def _takes_nothing(campaign: CampaignSession, model: ModelRef, where: str) -> NoServer:
    return NoServer(
        f"model {model.name!r}: {campaign.contacts.refusal(model.name)}; the server refuses every request, "
        f"canary prompts included, so this round is not recorded. Change {where} as this message requires, "
        f"then start a new campaign: {fork_command(campaign.record.spec)}"
    )


def require_what_losses_need(campaign: CampaignSession, texts: GenerationBatch) -> None:
    """Refuse to record a round of losses without the autoevaluator or the baseline.

    All losses need them. Otherwise each loss would count at its worst, and candidates would be dropped
    without fault. A local engine that never answered still counts against them.

    Raises:
        NoServer: Such a model is missing; gives the cause, or the server's message.
    """
    for whose, model in steps_of(campaign.checked).models_needed(campaign.checked):
        pairs = zip(texts.planned, texts, strict=True)
        answers = [text for planned, text in pairs if planned.model.name == model.name]
        gone = campaign.engines.failure(model) if any(map(_is_lost, answers)) else None
        if gone and (model.provider in ELSEWHERE or campaign.allowance.answered):
            raise NoServer(
                f"{gone.detail}; without the answers of {whose} no loss is known, and this round is not "
                "recorded: fix the cause, then resume"
            )
        are_refused = bool(answers) and all(
            isinstance(each, GenerationFailure) and each.reason == "refused" for each in answers
        )
        if are_refused and campaign.contacts.refusal(model.name) and not campaign.allowance.answered:
            raise _takes_nothing(campaign, model, f"the settings that {whose} sends")


def require_what_constraints_need(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> None:
    """Refuse to record a round without the models that evaluate the constraints.

    Otherwise all outputs would be paid for, and the question would stay open permanently.

    Raises:
        NoServer: Such a model is missing; gives the cause, or the server's message.
    """
    told = campaign.checked.told_metrics
    reasons = [each.reason for pair in comparisons for each in pair.judgments if each.metric in told]
    asked = [(name, model) for name in told for model in campaign.checked.metrics[name].models]
    gone = [campaign.engines.failure(model) for _, model in asked] if OUT_OF_REACH & set(reasons) else []
    for failure in filter(None, gone):
        raise NoServer(
            f"{failure.detail}; without its values the constraints cannot be checked, and this round is "
            "not recorded: fix the cause, then resume"
        )
    if set(reasons) == {"refused"} and not campaign.allowance.answered:
        for name, model in asked:
            if campaign.contacts.refusal(model.name):
                raise _takes_nothing(campaign, model, f"the settings that metric {name} sends")


MOST_IN_A_ROW = 10
"""Failures in a row after which a judge counts as broken, unless it works for other candidates."""


class JudgeBroken(WinnowError):
    """A judge failed on all recent outputs."""


def require_sound_judge(campaign: CampaignSession, comparisons: Sequence[NewComparison]) -> None:
    """Refuse to record a round whose third-party judge fails repeatedly.

    Comparisons are in planned order; the campaign's earlier rounds count as well.

    Raises:
        JudgeBroken: The judge fails repeatedly; quotes the last exception.
    """
    judged = [each for each in reversed(comparisons) if each.is_answered and each.reason != EQUAL_OUTPUTS]
    failed = list(takewhile(lambda each: each.reason == JUDGE_FAILED, judged))
    if not failed:
        return
    involved = [{each.candidate_a_id, each.candidate_b_id or each.candidate_a_id} for each in failed]
    has_worked = len(failed) < len(judged)
    if not has_worked:
        with campaign.database.reading() as session:
            before = unscored_views.latest(session, campaign.record.id, JUDGE_FAILED)
            has_worked = unscored_views.by_reason(session, campaign.record).get("", 0) > 0
        involved += [{a, b or a} for a, b in before]
    in_all = set.intersection(*involved)
    is_of_some = has_worked and in_all and in_all != set(campaign.candidate_ids)
    are_losses = steps_of(campaign.checked).counts_failures and not has_worked
    if is_of_some or (len(involved) < MOST_IN_A_ROW and not are_losses):
        return
    raise JudgeBroken(
        f"{failed[0].detail}; it failed on {_how_many(len(involved))}, and this round is not recorded; "
        f"{remedy()}"
    )


def _how_many(failures: int) -> str:
    return f"each of the last {failures} comparisons" if failures > 1 else "the only comparison so far"
