"""Get the outputs of a planned round: reuse stored ones, generate the others."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace

from sqlalchemy.orm import Session

from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import generations as generation_records
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import NewGeneration, NewModelLoad, RoundRecord, StoredText
from winnow.storage.text import storable
from winnow.tasks.campaign.contacts import meet_servers
from winnow.tasks.campaign.lease import now
from winnow.tasks.campaign.planned_outputs import (
    GenerationBatch,
    PlannedGeneration,
    RequestGroups,
    missing_groups,
    whole_calls,
)
from winnow.tasks.campaign.replay import arms_and_examples
from winnow.tasks.campaign.reuse import reusable_texts, stored_texts
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.candidates.cache_keys import (
    RequestKeys,
    generation_key,
    is_greedy,
    request_content,
    request_seed,
)
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.candidates.likelihood_scoring import Asked, asked_of
from winnow.tasks.candidates.text_rules import apply_rules
from winnow.tasks.data.images import IMAGES_KEY
from winnow.tasks.engines.chat import as_stored, messages_of, separated
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.engines.pool.load_times import LoadTime
from winnow.tasks.engines.pool.request_scheduler import Parts, RequestGroup
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.errors import DatasetError, TemplateError
from winnow.tasks.spec.stored_spec import NO_STORED_TEXT, ONLY
from winnow.tasks.text.canonical_json import sha256

Found = tuple[list[PlannedGeneration], dict[str, StoredText]]
"""Planned generations with their keys, and the stored outputs by key."""

RenderedPrompts = dict[tuple[object, ...], Asked | GenerationFailure]
"""Rendered prompts of examples.
Candidates with the same prompt share them; if texts are scored, only those with the same model do.
"""

REFUSED = "refused"
"""Finish reason of a refused output, which is stored only for its cost."""

NO_TEXT = GenerationFailure(
    reason=NO_STORED_TEXT, detail="no text of this request is stored, and reuse: only makes none"
)


def plan_generations(campaign: CampaignSession, round_: RoundRecord) -> list[PlannedGeneration]:
    """Plan the request for every output of a round, in `arms_and_examples` order.

    Several outputs of a candidate for an example are consecutive; each is a replicate.
    """
    asked = arms_and_examples(round_.arms, round_.examples)
    prompts: RenderedPrompts = {}
    if (samples := campaign.checked.spec.samples) is not None:
        return [
            plan_generation(campaign, arm, example, number, prompts)
            for arm, example in asked
            for number in range(samples.n)
        ]
    replicates = campaign.replicates.replicates(asked)
    return [
        plan_generation(campaign, arm, example, replicate, prompts)
        for (arm, example), replicate in zip(asked, replicates, strict=True)
    ]


def have_outputs(
    campaign: CampaignSession, round_: RoundRecord, planned: Sequence[PlannedGeneration]
) -> GenerationBatch:
    """Generate all outputs of a round, or only find stored ones under `reuse: only`.

    Raises the errors of `have_texts`.
    """
    if campaign.checked.spec.reuse != ONLY:
        return have_texts(campaign, round_, planned)
    wanted = planned
    planned, texts = _taken(campaign, round_, lambda session: stored_texts(session, wanted))
    campaign.use_texts(round_, texts)
    failures = {each.key: each.unasked or NO_TEXT for each in planned if each.key not in texts}
    return GenerationBatch(planned=planned, texts=texts, failures=failures)


def have_texts(
    campaign: CampaignSession, round_: RoundRecord, planned: Sequence[PlannedGeneration]
) -> GenerationBatch:
    """Generate and store every planned output; a missing output has a reason.

    The call can be repeated, and then generates only what is not stored. Requests are grouped by model. The
    groups depend only on the plan, so a resumed round sends the same groups to the engine. Engines decide the
    order of groups, and which run together; each group is stored when it is complete.

    Raises:
        EngineDied, EngineTimeout: Transient; committed outputs stay, and so do those that other engines
            generated in the meantime.
        ServedModelDiffers: A server that replaced another one serves a different model.
        LeaseLost: Another process took the campaign over.
    """
    wanted = WantedTexts(campaign, round_, planned)
    asked = campaign.engines.answers(
        wanted.groups, later=campaign.checked.judge_models, take_parts=wanted.store_parts
    )
    with closing(asked) as answered:
        for number, answers in answered:
            wanted.store(number, answers)
    return wanted.batch()


class WantedTexts:
    """The outputs that a round needs; missing ones are requested in groups.

    Args:
        campaign: The campaign.
        round_: The round that needs the outputs.
        planned: All outputs that it needs, in order.
        begun_after: Number of observed rounds when the round's first request was sent; None if these are all
            earlier rounds.

    Raises:
        ServedModelDiffers, EngineDied, EngineTimeout: At the first contact with a server.
        LeaseLost: Another process took the campaign over.
    """

    def __init__(
        self,
        campaign: CampaignSession,
        round_: RoundRecord,
        planned: Sequence[PlannedGeneration],
        *,
        begun_after: int | None = None,
    ) -> None:
        self._campaign, self._round = campaign, round_
        self._begun_after = round_.number if begun_after is None else begun_after
        meet_servers(campaign, ((each.model, each.fingerprint) for each in planned))
        self._planned, self._texts = _taken(
            campaign, round_, lambda session: reusable_texts(session, campaign, round_, planned)
        )
        self._failures = {each.key: each.unasked for each in self._planned if each.unasked is not None}
        self._missing = self._groups()
        self._left = {number: set(range(len(group))) for number, group in enumerate(self._missing)}
        campaign.use_texts(round_, self._texts)

    @property
    def groups(self) -> list[RequestGroup]:
        """The groups of requests to send."""
        return [
            RequestGroup(model=group[0].model, requests=[each.request for each in group])
            for group in self._missing
        ]

    @property
    def are_there(self) -> bool:
        """Whether every group is answered."""
        return not self._left

    def store(self, number: int, answers: Sequence[Answer]) -> None:
        """Store the answers to a group, unless they are stored already.

        Args:
            number: Index of the group in `groups`.
            answers: Its answers, in order.
        """
        self.store_parts({number: dict(enumerate(answers))})

    def store_parts(self, parts: Parts) -> None:
        """Store the answers that are not stored yet, and the model loads that are not stored yet.

        Groups can be incomplete. Nothing is stored if `parts` has no new answer.

        Args:
            parts: Answers, by the number of the group, then by the position in it.
        """
        new = {
            number: {place: answer for place, answer in answers.items() if place in self._left[number]}
            for number, answers in parts.items()
            if number in self._left
        }
        if not new:
            return
        campaign, round_id = self._campaign, self._round.id
        made, failed, paid_in_vain = _told_apart(
            campaign,
            [
                (self._missing[number][place], answer)
                for number, answers in new.items()
                for place, answer in answers.items()
            ],
        )
        loaded = [_new_load(each) for each in campaign.engines.take_loads()]
        with writing_under(campaign.database, campaign.lease) as session:
            campaign_records.add_loads(session, campaign.record.id, loaded)
            generation_records.add_generations(session, round_id, paid_in_vain, now())
            texts = generation_records.add_generations(session, round_id, made, now())
        self._failures |= failed
        self._texts |= texts
        campaign.use_texts(self._round, texts)
        for number, answers in new.items():
            self._left[number] -= answers.keys()
            if not self._left[number]:
                del self._left[number]

    def batch(self) -> GenerationBatch:
        """The outputs and failures so far; complete if `are_there`."""
        return GenerationBatch(planned=self._planned, texts=self._texts, failures=self._failures)

    def _groups(self) -> RequestGroups:
        groups = self._all_groups()
        _require_images(each.request for group in groups for each in group)
        return groups

    def _all_groups(self) -> RequestGroups:
        spec, known = self._campaign.checked.spec, self._texts.keys() | self._failures.keys()
        if spec.streaming:
            return missing_groups(self._planned, spec.execution.group_size, known)
        with self._campaign.database.reading() as session:
            made_in = generation_records.rounds_since(
                session, list(self._texts), campaign_id=self._campaign.record.id, number=self._begun_after
            )
        return whole_calls(self._planned, spec.execution.group_size, known, made_in, self._round.number)


def _require_images(requests: Iterable[Request]) -> None:
    """Refuse to send an image that is not there any more, or was changed; raises `DatasetError`."""
    for image in dict.fromkeys(each for request in requests for each in request.images):
        try:
            image.as_url()
        except ValueError as error:
            raise DatasetError(f"the image {image.shown} {error}", IMAGES_KEY) from error


def _taken(campaign: CampaignSession, round_: RoundRecord, find: Callable[[Session], Found]) -> Found:
    """Find stored outputs for the plan, and protect them from deletion from now on."""
    with campaign.database.reading() as session:
        planned, found = find(session)
        own = generation_records.own_or_since(
            session, list(found), campaign_id=campaign.record.id, since=None
        )
    if found.keys() <= own:
        # No write is needed, as in most rounds: a campaign's own outputs are not deleted while it runs. So a
        # round that is killed repeatedly still makes progress with every process.
        return planned, found
    with writing_under(campaign.database, campaign.lease) as session:
        return planned, generation_records.take_texts(session, round_.id, list(found))


def plan_generation(
    campaign: CampaignSession, arm: int, example: int, replicate: int, prompts: RenderedPrompts | None = None
) -> PlannedGeneration:
    """Plan the request for one output, with its storage key.

    Args:
        campaign: The campaign.
        arm: The candidate.
        example: Position of the example.
        replicate: Number of the output among those of one request.
        prompts: Cache of rendered prompts; None without a cache.
    """
    candidate = campaign.checked.candidates[arm]
    if not campaign.checked.spec.fresh_generations:
        replicate = 0
    return plan_text(
        candidate.model,
        candidate.fingerprint,
        _asked(campaign, candidate, example, {} if prompts is None else prompts),
        candidate.sampling,
        seed=campaign.record.seed,
        replicate=replicate,
        rules=campaign.checked.text_rules,
        keys=campaign.request_keys.setdefault(arm, {}),
        cut_at_stop=campaign.checked.cuts_at_stop,
    )


def _asked(
    campaign: CampaignSession, candidate: Candidate, example: int, prompts: RenderedPrompts
) -> Asked | GenerationFailure:
    weighing, row = campaign.checked.weighing, campaign.checked.dataset.examples[example]
    # Scored texts depend on the model, too: a space may separate the prompt from what follows.
    of = (id(candidate.template), id(candidate.guardrail), weighing and candidate.model.name, example)
    if of not in prompts:
        places = campaign.checked.dataset.images
        prompts[of] = rendered(lambda: asked_of(candidate, weighing, row.fields, row.key, places))
    return prompts[of]


def rendered(asked: Callable[[], Asked]) -> Asked | GenerationFailure:
    """Render a prompt; return the failure if a template fails on the example.

    The check of the campaign does not try every example.
    """
    try:
        return asked()
    except TemplateError as error:
        return GenerationFailure(reason="not_rendered", detail=str(error))


def plan_text(
    model: ModelRef,
    fingerprint: str,
    asked: Asked | GenerationFailure,
    sampling: Sampling,
    *,
    seed: int,
    rules: int,
    replicate: int = 0,
    drawn: int | None = None,
    keys: dict[bool, RequestKeys] | None = None,
    cut_at_stop: bool = False,
) -> PlannedGeneration:
    """Plan a request, with its storage key and a seed derived from the campaign's.

    If the prompt could not be rendered, nothing is requested, looked up or stored.

    Args:
        model: The model.
        fingerprint: Identity of the model's weights.
        asked: The prompt, or the failure to render it.
        sampling: Sampling settings of the file.
        seed: Seed of the campaign.
        rules: Version of the campaign's rules; see `tasks.candidates.text_rules`.
        replicate: Number of the output among those of one request.
        drawn: Seed of the request; None if it follows from the campaign's seed.
        keys: Cached keys for the model, fingerprint and sampling, by whether prompts get a first token.
        cut_at_stop: See `PlannedGeneration`.
    """
    if isinstance(asked, GenerationFailure):
        return PlannedGeneration(
            key=sha256({"unasked": asked.detail, "model": fingerprint}),
            model=model,
            fingerprint=fingerprint,
            request=Request(prompt="", sampling=sampling, seed=0),
            unasked=asked,
        )
    # Greedy outputs depend on no seed, so campaigns with other seeds can reuse them.
    greedy = is_greedy(model, sampling)
    replicate = 0 if greedy else replicate
    weighed = tuple(dict.fromkeys(asked.continuations))
    if not weighed:
        sampling = apply_rules(sampling, model, asked.prompt, rules=rules)
    if keys is not None and not weighed and not asked.images:
        if sampling.one_bos not in keys:
            keys[sampling.one_bos] = RequestKeys(model, fingerprint, sampling)
        drawn, key = keys[sampling.one_bos].of(asked.prompt, replicate, seed)
    else:
        content = request_content(
            model, fingerprint, asked.prompt, sampling, replicate, weighed, asked.is_greedy, asked.images
        )
        if drawn is None:
            drawn = 0 if greedy else request_seed(seed, content)
        key = generation_key(content, drawn)
    return PlannedGeneration(
        key=key,
        model=model,
        fingerprint=fingerprint,
        request=Request(
            prompt=as_stored(asked.prompt, asked.images),
            sampling=sampling,
            seed=drawn,
            messages=messages_of(asked.prompt) if asked.images or not isinstance(asked.prompt, str) else (),
            images=asked.images,
            continuations=weighed,
            is_greedy=asked.is_greedy,
        ),
        replicate=replicate,
        cut_at_stop=cut_at_stop,
    )


def _told_apart(
    campaign: CampaignSession, answered: Sequence[tuple[PlannedGeneration, Answer]]
) -> tuple[list[NewGeneration], dict[str, GenerationFailure], list[NewGeneration]]:
    """Split answers into usable outputs, failures by key, and unusable paid outputs."""
    made: list[NewGeneration] = []
    failures: dict[str, GenerationFailure] = {}
    unused: list[NewGeneration] = []
    engines: dict[str, str] = {}
    for generation, answer in answered:
        completion = answer.spent if isinstance(answer, GenerationFailure) else answer
        if isinstance(answer, GenerationFailure):
            failures[generation.key] = answer
        if completion is None:
            continue
        if (model := generation.model).name not in engines:
            engines[model.name] = campaign.engines.identity(model)
        new = _new_generation(campaign, generation, completion, engines[model.name])
        if completion is answer:
            made.append(new)
        else:
            unused.append(_never_found(new))
    return made, failures, unused


def _never_found(text: NewGeneration) -> NewGeneration:
    """An output that counts as paid, under a key that is never looked up.

    So its request is repeated.
    """
    asked = text.request_key or text.key
    key = sha256({"key": asked, REFUSED: now().isoformat()})
    return replace(text, key=key, request_key=asked, finish_reason=REFUSED)


def _new_generation(
    campaign: CampaignSession, generation: PlannedGeneration, completion: Completion, engine: str
) -> NewGeneration:
    given = generation.request.sampling.choices or generation.request.continuations
    how = None if given else generation.model.reasoning
    text, reasoning = separated(completion.text, completion.reasoning, how)
    if generation.model.provider in AGENTS:  # an agent's trace
        reasoning = completion.reasoning
    return NewGeneration(
        key=generation.key,
        request_key=generation.request_key,
        model=generation.model.name,
        prompt=storable(generation.request.prompt),
        seed=generation.request.seed,
        replicate=generation.replicate,
        text=storable(text),
        reasoning=None if reasoning is None else storable(reasoning),
        choice_logprobs=completion.choice_logprobs or completion.reported,
        token_logprobs=completion.token_logprobs,
        finish_reason=completion.finish_reason,
        input_tokens=completion.input_tokens,
        output_tokens=completion.output_tokens,
        seconds=completion.seconds,
        latency=completion.latency,
        cached_tokens=completion.cached_tokens,
        engine=engine,
        served_as=None if completion.served_as is None else storable(completion.served_as),
        canary_id=campaign.contacts.canary_id(generation.model.name),
    )


def _new_load(load: LoadTime) -> NewModelLoad:
    return NewModelLoad(
        model=load.model, devices=load.devices, kind=load.kind, seconds=load.seconds, ended_at=load.ended_at
    )
