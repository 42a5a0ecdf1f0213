"""Contact a campaign's servers: each served model first answers canary prompts.

This happens before any of the model's outputs is used. Each contact sends the first of sixteen prompts: the
same at every contact, but different ones for different models. Their number is about 5% of the model's
requests in a campaign, and at least five. Five different answers out of five still show a change, if the
server repeats itself.

The answers are compared with those of the canary that is the model's reference, on the prompts that both
have. The model counts as changed in two cases: if its server reports another name for it, or if significantly
more answers differ than between two requests to the same server (Fisher's exact test at 1%, one-sided). From
then on the model is in a new epoch: its earlier outputs are those of another model. With a server that
repeats itself, six answers of sixteen have to differ, or five of five.

The prompts of a reference are sent a second time after the first round is recorded, when its server has less
load. If this was not done, for example after a kill, and a later contact gives other answers, they are sent
again then. A contact with more prompts than the reference becomes the next reference.
"""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, replace

from winnow.storage.objectives import traits_of
from winnow.storage.records import canaries as canary_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import CanaryRecord, NewCanary
from winnow.storage.text import storable
from winnow.tasks.campaign.changed_models import N_PROMPTS, count_changed, has_changed, other_names
from winnow.tasks.campaign.lease import now
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession, Contact, Place, Unrepeated
from winnow.tasks.candidates.cache_keys import request_content
from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.known_providers import REMOTE
from winnow.tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.server_keys import server_url
from winnow.tasks.errors import ServedModelDiffers
from winnow.tasks.spec.sections.budget import PriceSpec
from winnow.tasks.spec.stored_spec import fork_command, limits_of
from winnow.tasks.text.canonical_json import sha256

LEAST = 5
"""Minimum number of canary prompts with which a change can be significant; see
`changed_models.has_changed`.
"""

SHARE = 0.05
"""Maximum share of a campaign's requests, and of its limits of tokens and cost, that canary prompts take."""

LENGTHS = (16, 32)
"""Approximate number of tokens of a canary prompt, and of its answer."""


def n_prompts(checked: ResolvedCampaign, model: ModelRef) -> int:
    """Number of canary prompts for a served model at each contact of a campaign."""
    spec = checked.spec
    share = SHARE * texts_of(checked, model)
    limits = limits_of(spec.stopping.stored_budget, spec.objective)
    n_served = sum(each.provider in REMOTE for each in checked.models_to_ask)
    if "tokens" in limits:
        share = min(share, SHARE * limits["tokens"] / sum(LENGTHS) / max(1, n_served))
    if "cost" in limits and (price := _price(spec.execution.prices.get(model.name))):
        share = min(share, SHARE * limits["cost"] / price / max(1, n_served))
    return max(LEAST, min(N_PROMPTS, math.ceil(share)))


def texts_of(checked: ResolvedCampaign, model: ModelRef) -> float:
    """Estimate the outputs that a campaign requests from a model if it uses its whole budget.

    Candidates are assumed to have equal numbers of comparisons. A model that only judges is assumed to give
    one reply for each comparison and sample. Judge calls to a candidate's model are not counted.
    """
    asked = checked.most * checked.spec.texts_each
    own = sum(each.model.name == model.name for each in checked.candidates)
    if not own:  # it judges
        return asked
    sides = 2 if traits_of(checked.spec.objective).compares_pairs else 1
    return asked * sides * own / len(checked.candidates)


def canary_words(checked: ResolvedCampaign) -> str | None:
    """Clause on the number of canary prompts per served model; None without any."""
    if not checked.spec.execution.canaries:
        return None
    asked = {each.name: n_prompts(checked, each) for each in checked.models_to_ask if each.provider in REMOTE}
    if not asked:
        return None
    if len({*asked.values()}) == 1:
        each = "" if len(asked) == 1 else f" for each of {len(asked)} served models"
        return f"{next(iter(asked.values()))} of {N_PROMPTS} canary prompts{each}"
    told = ", ".join(f"{n} for {name}" for name, n in asked.items())
    return f"of {N_PROMPTS} canary prompts {told}"


def _price(price: PriceSpec | None) -> float:
    """Price of a canary prompt and its answer; 0 if the model has no price."""
    if price is None:
        return 0.0
    return (LENGTHS[0] * price.input + LENGTHS[1] * price.output) / 1_000_000


OUT_OF_REACH = frozenset({"load_failed", "engine_failed"})
"""Reasons of failures that affect a server as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    texts: Sequence[str | None]
    served_as: str | None = None
    """The server's name for the model; None if the server reports no name, or several names."""
    input_tokens: int
    output_tokens: int
    repeated: Sequence[str | None] = ()
    """Answers to a second request; empty without one. The counts include its tokens."""

    def repeated_as(self, again: "_Answers") -> "_Answers":
        """Combine these answers with those of a second request."""
        return replace(
            self,
            repeated=again.texts,
            input_tokens=self.input_tokens + again.input_tokens,
            output_tokens=self.output_tokens + again.output_tokens,
        )


def meet_servers(campaign: CampaignSession, models: Iterable[tuple[ModelRef, str]]) -> None:
    """Send canary prompts to each served model not yet contacted by this process.

    A server that does not answer fails later, at its first request for outputs.

    Args:
        campaign: The running campaign.
        models: Models with the fingerprints of their weights; those that are not served are skipped.

    Raises:
        ServedModelDiffers: A server that replaced another one does not serve the same model.
        EngineDied, EngineTimeout: Transient, as in `have_texts`.
        LeaseLost: Another process took the campaign over.
    """
    contacts = campaign.contacts
    places: dict[str, tuple[ModelRef, Place]] = {}
    for model, fingerprint in models:
        if model.provider in REMOTE and not (model.name in contacts.by_name or model.name in places):
            served = served_model(model, fingerprint)
            places[model.name] = model, (served, server_url(model.model_base_url))
    if not campaign.checked.spec.execution.canaries:
        for name, (model, place) in places.items():
            contacts.by_name[name] = _unchecked(campaign, model, *place)
        return
    new = {place: model for model, place in places.values() if place not in contacts.by_place}
    failed: EngineError | None = None
    for place, asked in _asked_side_by_side(campaign, new).items():
        try:
            answers = asked.result()
        except EngineError as error:
            failed = failed or error
            continue
        contacts.by_place[place] = _met(campaign, new[place], *place, answers)
    for name, (_, place) in places.items():
        if place in contacts.by_place:
            contacts.by_name[name] = contacts.by_place[place]
    if failed is not None:
        raise failed


def _unchecked(campaign: CampaignSession, model: ModelRef, served: str, server: str) -> Contact:
    """Contact of a served model without canary prompts; it counts as unchanged."""
    _refuse_unknown_move(campaign, model, server, "and canaries are off (execution.canaries)")
    with campaign.database.reading() as session:
        reference = canary_records.last_reference(session, served)
    epoch = 0 if reference is None else reference.epoch
    return Contact(epoch=epoch, canary_id=None, is_unchecked=True)


def repeat_references(campaign: CampaignSession) -> None:
    """Send the prompts of this process's new references a second time.

    References without an answer are skipped.

    Raises:
        LeaseLost: Another process took the campaign over.
    """
    new, campaign.contacts.unrepeated = campaign.contacts.unrepeated, {}
    models = {place: reference.model for place, reference in new.items()}
    for place, asked in _asked_side_by_side(campaign, models).items():
        reference = new[place]
        try:
            answers = asked.result()
        except EngineError:
            continue
        if isinstance(answers, GenerationFailure):
            continue
        with writing_under(campaign.database, campaign.lease) as session:
            canary_records.repeat_canary(
                session,
                reference.canary_id,
                [*reference.known, *answers.texts[len(reference.known) :]],
                input_tokens=answers.input_tokens,
                output_tokens=answers.output_tokens,
            )


MOST_AT_ONCE = 16
"""Maximum number of models contacted at the same time."""

Asked = Future["_Answers | GenerationFailure"]


def _asked_side_by_side(campaign: CampaignSession, models: dict[Place, ModelRef]) -> dict[Place, Asked]:
    """Send canary prompts to models in parallel; return once all have answered."""
    if not models:
        return {}
    with ThreadPoolExecutor(min(len(models), MOST_AT_ONCE)) as threads:
        asked: dict[Place, Asked] = {
            place: threads.submit(copy_context().run, _canary_answers, campaign, model, place[0])
            for place, model in models.items()
        }
        try:
            wait(asked.values())
        except BaseException:  # an interrupt must not wait for servers
            campaign.engines.abandon()
            raise
    return asked


def _met(
    campaign: CampaignSession,
    model: ModelRef,
    served: str,
    server: str,
    answers: "_Answers | GenerationFailure",
) -> Contact:
    with campaign.database.reading() as session:
        reference = canary_records.last_reference(session, served)
    if reference is None:
        _refuse_unknown_move(campaign, model, server)
    if isinstance(answers, GenerationFailure):
        refusal = None if answers.reason in OUT_OF_REACH else answers.detail
        return Contact(epoch=0 if reference is None else reference.epoch, canary_id=None, refusal=refusal)
    if reference is None:
        return _kept(campaign, model, served, server, answers, epoch=0, verdict="first")
    n = min(len(reference.texts), len(answers.texts))
    noise = count_changed(reference.texts[:n], reference.repeated[:n])
    changed = count_changed(reference.texts[:n], answers.texts[:n])
    is_renamed = other_names(reference, server, answers.served_as) is not None
    if changed and not reference.repeated and not is_renamed:
        again = _canary_answers(campaign, model, served)
        if not isinstance(again, GenerationFailure):
            answers = answers.repeated_as(again)
            noise = count_changed(answers.texts[:n], again.texts[:n])
    if not is_renamed and not has_changed(noise, changed, n):
        is_reference = n < len(answers.texts) or bool(answers.repeated)
        if n < len(answers.texts):  # later contacts are still compared with the earliest answers
            answers = replace(answers, texts=[*reference.texts[:n], *answers.texts[n:]])
        return _kept(
            campaign, model, served, server, answers,
            epoch=reference.epoch, verdict="first" if is_reference else "same", changed=changed,
            known=reference.repeated[:n],
        )  # fmt: skip
    _refuse_replacement(campaign, model, reference, server, changed, n)
    return _kept(
        campaign, model, served, server, answers,
        epoch=reference.epoch + 1, verdict="changed", changed=changed,
    )  # fmt: skip


def _canary_answers(campaign: CampaignSession, model: ModelRef, served: str) -> _Answers | GenerationFailure:
    """The answers to the canary prompts, or the failure if no prompt was answered.

    A server that is lost while it answers counts as a failure, too.
    """
    requests = canary_requests(served)[: n_prompts(campaign.checked, model)]
    # One server has to answer all prompts: answers of another one say nothing about this one.
    answers = campaign.engines.generate(model, requests, keeps=False)
    made = [each for each in answers if isinstance(each, Completion)]
    failures = [each for each in answers if isinstance(each, GenerationFailure)]
    lost = [each for each in failures if each.reason in OUT_OF_REACH]
    if lost or not made:
        return (lost or failures)[0]
    names = {each.served_as for each in made} - {None}
    paid = [each.spent if isinstance(each, GenerationFailure) else each for each in answers]
    return _Answers(
        # The short output of a reasoning model can end before its answer begins.
        texts=[
            storable(f"{each.reasoning or ''}{each.text}") if isinstance(each, Completion) else None
            for each in answers
        ],
        served_as=storable(names.pop() or "") if len(names) == 1 else None,
        input_tokens=sum(each.input_tokens for each in paid if each is not None),
        output_tokens=sum(each.output_tokens for each in paid if each is not None),
    )


def _kept(
    campaign: CampaignSession,
    model: ModelRef,
    served: str,
    server: str,
    answers: _Answers,
    *,
    epoch: int,
    verdict: str,
    changed: int = 0,
    known: Sequence[str | None] = (),
) -> Contact:
    """Store a canary; for a new reference, schedule the second request of its prompts.

    Args:
        campaign: The running campaign.
        model: The model.
        served: The model's digest from `served_model`.
        server: URL of its server.
        answers: The answers to the canary prompts.
        epoch: Number of detected changes of the model.
        verdict: Result of the comparison with the reference.
        changed: Number of answers that differ from the reference.
        known: Earlier answers to a second request of the first prompts, which are kept.
    """
    canary = NewCanary(
        model=served,
        name=model.name,
        server=server,
        epoch=epoch,
        prompts=prompts_digest(canary_requests(served)),
        texts=answers.texts,
        repeated=answers.repeated,
        changed=changed,
        verdict=verdict,
        served_as=answers.served_as,
        input_tokens=answers.input_tokens,
        output_tokens=answers.output_tokens,
    )
    with writing_under(campaign.database, campaign.lease) as session:
        number = canary_records.add_canary(session, campaign.record.id, canary, now())
    if verdict in canary_records.REFERENCES and not answers.repeated:
        unrepeated = Unrepeated(model=model, canary_id=number, known=known)
        campaign.contacts.unrepeated[served, server] = unrepeated
    return Contact(epoch=epoch, canary_id=number)


def _refuse_unknown_move(
    campaign: CampaignSession, model: ModelRef, server: str, why: str = "which never answered a canary"
) -> None:
    """Refuse a move to another server that cannot be verified.

    Without outputs of this model in the campaign, nothing can be mixed, and the move is allowed.
    """
    first = campaign.checked.moved_from.get(model.name)
    if first is None:
        return
    with campaign.database.reading() as session:
        if not generation_records.has_texts(session, campaign.record.id, model.name):
            return
    raise ServedModelDiffers(
        f"model {model.name!r} was first served at {first}, {why}, so it is unknown "
        f"whether {server} serves the same model; {_remedy(campaign)}"
    )


def _refuse_replacement(
    campaign: CampaignSession, model: ModelRef, reference: CanaryRecord, server: str, changed: int, n: int
) -> None:
    said = (
        f"answers {changed} of {n} canary prompts differently from {reference.server} on "
        f"{reference.created_at:%Y-%m-%d}"
    )
    first = campaign.checked.moved_from.get(model.name)
    if first is not None:
        raise ServedModelDiffers(
            f"model {model.name!r} was first served at {first}, and {server} {said}: it does not serve the "
            f"same model; {_remedy(campaign)}"
        )
    met = campaign.contacts.by_place.items()
    elsewhere = [url for (served, url), contact in met if served == reference.model and contact.canary_id]
    if elsewhere:
        raise ServedModelDiffers(
            f"model {model.name!r} at {server} {said}, but by served_identity {model.served_identity!r} it "
            f"is the same model as at {elsewhere[0]}; start a new campaign in which each has its own "
            "served_identity"
        )


def _remedy(campaign: CampaignSession) -> str:
    new = f"start a new campaign that reuses all unchanged outputs: {fork_command(campaign.record.spec)}"
    return f"set model_base_url back, or {new}"


SAMPLING = Sampling(temperature=0.0, max_tokens=32)
"""Greedy decoding.
Rounding of weights changes a token now and then; a longer output shows this more often.
"""

# Openings with many possible continuations: if the next token is a close call, small differences show.
OPENINGS = (
    "The {0} met the {1} at {2}, and then",
    "{2} things a {0} shares with a {1}:",
    "Why is a {0} not a {1}? Answer {2}:",
    "Poem {2}, of a {0} and a {1}:",
)
WORDS = (
    "bridge", "lantern", "harbour", "violin", "glacier", "market", "compass", "wagon",
    "letter", "ladder", "shadow", "teacher", "desert", "clock", "garden", "mirror",
)  # fmt: skip


def served_model(model: ModelRef, fingerprint: str) -> str:
    """SHA-256 of what determines a model's outputs, besides prompt, sampling and seed."""
    return sha256(request_content(model, fingerprint, "", SAMPLING, 0))


def canary_requests(served: str) -> list[Request]:
    """The canary prompts for a served model, as requests.

    Args:
        served: The model's digest from `served_model`.
    """
    return [Request(prompt=_prompt(served, i), sampling=SAMPLING, seed=0) for i in range(N_PROMPTS)]


def contact_request(model: ModelRef) -> Request:
    """A request of one output token that shows whether a model is reachable."""
    [first, *_] = canary_requests(served_model(model, ""))
    return replace(first, sampling=replace(SAMPLING, max_tokens=1))


def prompts_digest(requests: list[Request]) -> str:
    """SHA-256 over all prompts of the given requests."""
    return sha256([[each.prompt, each.sampling.max_tokens] for each in requests])


def _prompt(served: str, number: int) -> str:
    draw = int(sha256([served, number]), 16)
    draw, first = divmod(draw, len(WORDS))
    draw, other = divmod(draw, len(WORDS) - 1)
    words = [word for word in WORDS if word != WORDS[first]]
    return OPENINGS[number % len(OPENINGS)].format(WORDS[first], words[other], 2 + draw % 98)
