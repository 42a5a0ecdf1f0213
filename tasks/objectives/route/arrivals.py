"""Prompts that arrive during a route campaign: check, store and answer them.

Their rounds are rounds like any other, so the router learns from them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from winnow.storage.engine.database import Database
from winnow.storage.json_types import JsonObject
from winnow.storage.records import leases, stream_batches
from winnow.storage.records.record_types import (
    CampaignRecord,
    NewComparison,
    NewExample,
    RoundRecord,
    StoredText,
)
from winnow.tasks.campaign.lease import is_gone, now, this_process, watch
from winnow.tasks.campaign.planned_outputs import GenerationBatch
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.campaign.session import CampaignSession, running
from winnow.tasks.candidates.likelihood_scoring import asked_of
from winnow.tasks.data.dataset_files import given_to_command
from winnow.tasks.data.datasets import Example, read_examples
from winnow.tasks.dotted_names import MISSING, value_of
from winnow.tasks.embedding.embedded_prompts import GivenVectors
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.judges.protocol import Sample, lacks_target
from winnow.tasks.objectives.route.objective import Route
from winnow.tasks.objectives.route.selector import as_router
from winnow.tasks.objectives.runner import finish_round, restarting
from winnow.tasks.rounds.plan import plan_new, stored_plan
from winnow.tasks.rounds.score import places_of
from winnow.tasks.text.canonical_json import sha256


def typed_prompt(prompt: str, targets: Sequence[str], fields: Sequence[str]) -> Example:
    """Create an example from a prompt on the command line.

    Args:
        prompt: The prompt.
        targets: Accepted targets; empty texts are ignored.
        fields: Further fields, each as "key=value".

    Raises:
        SpecError: A field has another form, or a text is not valid Unicode.
    """
    for text in (prompt, *targets, *fields):
        if _is_broken(text):
            raise SpecError(f"{text!r} contains half of a character and cannot be stored; remove that half")
    found: JsonObject = {"input": prompt}
    for field in fields:
        key, equals, value = field.partition("=")
        if not (key and equals):
            raise SpecError(f"--field {field!r} is not key=value; for example task=sum")
        found[key] = value
    return Example(key="", fields=found, targets=tuple(target for target in targets if target))


def read_prompts(path: str, campaign: CampaignRecord) -> list[Example]:
    """Read prompts from a file with the columns of the campaign's dataset.

    The id column is optional.

    Returns:
        Examples whose keys are the file's ids, or "" without ids.

    Raises:
        DatasetError: The file cannot be read or does not match the spec.
    """
    columns: Mapping[str, str | None] = campaign.spec["dataset"]["fields"]
    with given_to_command():
        found = read_examples(path, {**columns, "id": None})
    ids = (value_of(each.fields, columns.get("id") or "") for each in found)
    keys = ["" if each is None or each is MISSING else str(each) for each in ids]
    return [replace(each, key=key) for each, key in zip(found, keys, strict=True)]


def store_arrival(
    database: Database, campaign: CampaignRecord, checked: ResolvedCampaign, examples: Sequence[Example]
) -> list[int]:
    """Check prompts and store them permanently in a route campaign.

    A prompt with a stored id and the same content is skipped; one without an id is always new.

    Returns:
        Example positions of the new prompts.

    Raises:
        WinnowError: The campaign does not route, or a prompt cannot be rendered, embedded or judged.
        LeaseHeld: Another live process runs the campaign.
    """
    checked = require_route(campaign, checked)
    if not (examples := _new(examples, checked.dataset.examples)):
        return []
    for example in examples:
        _require_usable(checked, example)
    checked.embedding.contexts(database, replace(checked.dataset, examples=tuple(examples)))
    watch(database, campaign.id, now=now())
    content = json.dumps([[each.fields, each.targets] for each in examples])
    with database.writing() as session:
        leases.require_free(session, campaign.id, this_process(), is_gone=is_gone)
        number = stream_batches.next_number(session, campaign.id)
        keyed = [
            NewExample(
                key=each.key or f"arrival-{number + 1}-{place}", fields=each.fields, targets=each.targets
            )
            for place, each in enumerate(examples, 1)
        ]
        first = stream_batches.add_stream_batch(
            session,
            campaign.id,
            keyed,
            fingerprint=sha256(["arrival", campaign.id, number, content]),
            now=now(),
        )
    return list(range(first, first + len(examples)))


def require_route(
    campaign: CampaignRecord, checked: ResolvedCampaign, *, does: str = "answer prompts that arrive"
) -> Route:
    """Return `checked` if it is a route campaign.

    Args:
        campaign: The campaign's row.
        checked: The campaign.
        does: End of the error message "only route campaigns ...".

    Raises:
        WinnowError: The campaign has another objective.
    """
    if not isinstance(checked, Route):
        raise WinnowError(
            f"'{campaign.name}' is a {campaign.objective} campaign; only route campaigns {does}"
        )
    return checked


def _new(examples: Sequence[Example], stored: Sequence[Example]) -> list[Example]:
    """The examples that are not stored yet, each with an id that is free.

    If another example has the id, a suffix is added.
    """
    taken = {each.key: _content(each) for each in stored}
    new: list[Example] = []
    for each in examples:
        content, key = _content(each), each.key
        if key and taken.get(key, content) != content:
            key = f"{key}~{content[:8]}"
        if key not in taken:
            new.append(replace(each, key=key))
        if key:
            taken[key] = content
    return new


def _content(example: Example) -> str:
    return sha256([example.fields, example.targets])


def _require_usable(checked: Route, example: Example) -> None:
    shown = str(example.fields["input"])[:60]
    if isinstance(checked.embedding, GivenVectors):
        raise SpecError(
            "a file of precomputed vectors has no vector for a new prompt; route new prompts in a campaign "
            "whose embedder reads text",
            path="embedder.path",
        )
    templates = frozenset().union(*(candidate.template.variables for candidate in checked.candidates))
    if checked.weighing is not None:
        templates |= checked.weighing.variables
    for name in sorted((templates | checked.embedding.fields) - set(example.fields)):
        raise SpecError(
            f"the prompt {shown!r} has no field {name!r}, which a template uses; give it with "
            f"--field {name}=VALUE, or as a column of the file"
        )
    for candidate in checked.candidates:
        asked_of(candidate, checked.weighing, example.fields, shown)
    sample = Sample(output="", targets=example.targets, fields=example.fields)
    if lacks_target(checked.judge, sample):
        raise SpecError(
            f"the judge {checked.spec.judge.type} needs a target for {shown!r}: give it "
            "with --target, or in the file; to choose without learning, use winnow route NAME --export DIR"
        )


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedAnswer:
    """The chosen candidate for one prompt, its output, and the score."""

    prompt: str
    candidate: str
    text: str | None
    """The output, or the representative one of several; None if the candidate gave no output."""
    score: float | None
    reason: str | None
    """Reason for a missing score; None with a score."""


def answer_prompts(
    database: Database,
    record: CampaignRecord,
    checked: ResolvedCampaign,
    positions: Sequence[int] | None,
    say: Callable[[RoutedAnswer], None],
) -> int:
    """Answer prompts by the candidates chosen for them, in rounds of a batch.

    A round that an earlier call left unfinished is finished first.

    Args:
        database: The database of the campaign.
        record: A route campaign, as stored.
        checked: The same campaign, reopened.
        positions: Positions of examples that were not answered before; None for all arrived prompts without
            an answer, for example after an interruption.
        say: Called with each answer after its round is stored.

    Returns:
        Number of these prompts. `say` is not called for prompts if no candidate remains.

    Raises:
        WinnowError: The campaign does not route.
        LeaseHeld: Another live process runs the campaign.
        EngineDied, EngineTimeout: An engine fails repeatedly; committed outputs stay.
    """
    checked = require_route(record, checked)
    with running(database, record, checked) as campaign:
        if positions is None:
            with database.reading() as session:
                positions = stream_batches.unanswered(session, record.id)
        left = _after_the_begun(campaign, positions, say)
        size = checked.spec.batch_size
        for start in range(0, len(left), size):
            for answer in _answer(campaign, left[start : start + size]):
                say(answer)
        return len(positions)


def _after_the_begun(
    campaign: CampaignSession, positions: Sequence[int], say: Callable[[RoutedAnswer], None]
) -> Sequence[int]:
    """Finish an unfinished round, if any; return the positions that are not in it."""
    if (begun := stored_plan(campaign)) is None:
        return positions
    wanted, taken = {*positions}, {*begun.examples}
    for position, answer in zip(begun.examples, _finish(campaign, begun), strict=True):
        if position in wanted:
            say(answer)
    return [each for each in positions if each not in taken]


def _answer(campaign: CampaignSession, positions: Sequence[int]) -> list[RoutedAnswer]:
    round_ = plan_new(campaign, lambda rng: as_router(campaign.selector).ask_about(rng, positions))
    return [] if round_ is None else _finish(campaign, round_)


def _finish(campaign: CampaignSession, round_: RoundRecord) -> list[RoutedAnswer]:
    found = finish_round(campaign, round_, restarting(campaign.most_restarts))
    assert found is not None, "a stream does not wait for annotators"
    return [_routed(campaign, round_, found.texts, each) for each in found.comparisons]


def _routed(
    campaign: CampaignSession, round_: RoundRecord, texts: GenerationBatch, comparison: NewComparison
) -> RoutedAnswer:
    of_pair = [texts[place] for place in places_of(campaign, comparison.position)]
    shown = [each for each in of_pair if isinstance(each, StoredText)]
    text = next((each for each in shown if each.id == comparison.generation_a_id), None)
    return RoutedAnswer(
        prompt=campaign.checked.dataset.examples[round_.examples[comparison.position]].question,
        candidate=campaign.checked.candidates[round_.arms[comparison.position]].name,
        text=None if text is None else text.text,
        score=comparison.outcome,
        reason=comparison.reason,
    )
