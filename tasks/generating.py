"""Texts for a planned round: stored ones are reused, the rest are generated and committed in groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage import repository
from storage.leases import writing_under
from storage.records import NewGeneration, RoundRecord, StoredText
from tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Request, Sampling
from tasks.identity import generation_key, request_content, request_seed
from tasks.leasing import now
from tasks.meetings import meetings_of
from tasks.running import RunningCampaign


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGeneration:
    """One text a round needs, of a candidate or of a judge."""

    key: str
    model: ModelRef
    request: Request
    replicate: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What became of planned generations, in their order."""

    planned: Sequence[PlannedGeneration]
    texts: Mapping[str, StoredText]
    """Stored generations by key."""
    failures: Mapping[str, GenerationFailure]
    """Why there is none, by key."""

    def __getitem__(self, position: int) -> StoredText | GenerationFailure:
        key = self.planned[position].key
        return self.texts[key] if key in self.texts else self.failures[key]


def generate_meetings(campaign: RunningCampaign, round_: RoundRecord) -> Texts:
    """Have the text of every meeting of the round, in the order of `meetings_of`; see `have_texts`."""
    meetings = meetings_of(round_.arms, round_.examples)
    replicates = campaign.meetings.replicates(meetings)
    planned = [
        plan_generation(campaign, arm, example, replicate)
        for (arm, example), replicate in zip(meetings, replicates, strict=True)
    ]
    return have_texts(campaign, round_, planned)


def have_texts(campaign: RunningCampaign, round_: RoundRecord, planned: Sequence[PlannedGeneration]) -> Texts:
    """Have every planned text stored, or know why one cannot be made.

    Safe to call again: it generates only what is not stored. Requests are grouped by model, and a group's
    make-up follows from the plan alone, so that a resumed round sends the engine the same groups.

    Raises:
        EngineDied, EngineTimeout: Transient; what was committed stays.
        LeaseLost: If another process took the campaign over.
    """
    with campaign.database.reading() as session:
        texts = repository.texts_by_key(session, [generation.key for generation in planned])
    failures: dict[str, GenerationFailure] = {}
    for model, group in _groups(planned, campaign.checked.spec.execution.group_size):
        missing = list({each.key: each for each in group if each.key not in texts}.values())
        if not missing:
            continue
        answers = campaign.engines.generate(model, [generation.request for generation in missing])
        made: list[NewGeneration] = []
        for generation, answer in zip(missing, answers, strict=True):
            if isinstance(answer, GenerationFailure):
                failures[generation.key] = answer
            else:
                made.append(_new_generation(campaign, generation, answer))
        with writing_under(campaign.database, campaign.lease) as session:
            texts |= repository.add_generations(session, round_.id, made, now())
    return Texts(planned=planned, texts=texts, failures=failures)


def plan_generation(campaign: RunningCampaign, arm: int, example: int, replicate: int) -> PlannedGeneration:
    """The request of one meeting, and the key it is stored under."""
    candidate = campaign.checked.candidates[arm]
    row = campaign.checked.dataset.examples[example]
    if not campaign.checked.spec.fresh_generations:
        replicate = 0
    return plan_text(
        candidate.model,
        candidate.fingerprint,
        candidate.prompt(row.fields, row.key),
        candidate.sampling,
        seed=campaign.record.seed,
        replicate=replicate,
    )


def plan_text(
    model: ModelRef, fingerprint: str, prompt: str, sampling: Sampling, *, seed: int, replicate: int = 0
) -> PlannedGeneration:
    """A request whose seed follows from the campaign's, and the key it is stored under."""
    # Greedy text depends on no seed and is the same every time: campaigns of other seeds can reuse it.
    greedy = sampling.temperature == 0.0
    replicate = 0 if greedy else replicate
    content = request_content(model, fingerprint, prompt, sampling, replicate)
    drawn = 0 if greedy else request_seed(seed, content)
    return PlannedGeneration(
        key=generation_key(content, drawn),
        model=model,
        request=Request(prompt=prompt, sampling=sampling, seed=drawn),
        replicate=replicate,
    )


def storable(text: str) -> str:
    """Model output as every database can hold it: NUL becomes U+FFFD, a lone surrogate a question mark."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def _groups(
    planned: Sequence[PlannedGeneration], size: int
) -> list[tuple[ModelRef, list[PlannedGeneration]]]:
    by_model: dict[str, list[PlannedGeneration]] = {}
    for generation in planned:
        by_model.setdefault(generation.model.name, []).append(generation)
    return [
        (wanted[start].model, wanted[start : start + size])
        for wanted in by_model.values()
        for start in range(0, len(wanted), size)
    ]


def _new_generation(
    campaign: RunningCampaign, generation: PlannedGeneration, completion: Completion
) -> NewGeneration:
    return NewGeneration(
        key=generation.key,
        model=generation.model.name,
        prompt=storable(generation.request.prompt),
        seed=generation.request.seed,
        replicate=generation.replicate,
        text=storable(completion.text),
        choice_logprobs=completion.choice_logprobs,
        finish_reason=completion.finish_reason,
        input_tokens=completion.input_tokens,
        output_tokens=completion.output_tokens,
        seconds=completion.seconds,
        engine=campaign.engines.identity(generation.model),
    )
