"""Detect missing models at the start, by one request to each model.

Nothing is stored before. A model is missing in three cases: its server does not have it, or refuses the key;
its server does not answer after all retries; or its hub does not have it. A campaign with missing models is
refused, or begins without them if its file allows that. The error probability is then divided among the
remaining candidates. A server's list of models is not used, because gateways list only some of their models:
only an answer to a request shows that a model is available.

A model with `structured_output` also gets a short request with it. If the answer cannot be the beginning of
the structure, the server ignores the key, which is reported before anything is spent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from winnow.storage.json_types import JsonView
from winnow.tasks.campaign.outputs import can_begin
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.data.hub_cache import why_unknown_to_hub
from winnow.tasks.engines.known_providers import AGENTS, REMOTE
from winnow.tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Request
from winnow.tasks.engines.providers import engine_key, start_engine
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.text.phrases import count_of, list_of
from winnow.tasks.text.printable import one_line

ALLOW_MISSING = "begin without them: --allow-missing (execution.allow_missing: true)"
"""How to begin without missing models; not every command has the option."""

LONGEST_CAUSE = 300
"""Maximum length of the shown cause of a missing model, in characters."""

LONGEST_SHOWN = 40
"""Maximum length of a shown answer, in characters."""

MOST_TOKENS = 16
"""Maximum number of tokens of a test answer for a structure."""


class ModelsMissing(SpecError):
    """Models of a campaign that is about to begin are missing."""


class Presence(NamedTuple):
    """Available and missing models of a campaign."""

    checked: ResolvedCampaign
    """The campaign without the candidates of missing models."""
    missing: Mapping[str, str]
    """The cause for each missing model, by name."""
    unstructured: Mapping[str, str] = {}
    """An output of each model whose server ignores `structured_output`, by name."""


def with_models_there(
    checked: ResolvedCampaign, stored: JsonView | None, *, without: str = ALLOW_MISSING
) -> Presence:
    """Send a request to each new model; leave out missing ones if the file allows it.

    Args:
        checked: The campaign as described by its file.
        stored: The identity of the stored campaign of this name; None if the campaign begins now. If it is
            stored, requests go only to models that are new to it and can join.
        without: How to begin without missing models, for the error message.

    Raises:
        ModelsMissing: A required model is missing.
        SpecError: Too few candidates are left without the missing models.
    """
    known = () if stored is None else [str(each["name"]) for each in stored["models"]]
    new = [each for each in checked.models_to_ask if each.name not in known or stored is None]
    absent: Mapping[str, str] = {} if stored is None else stored.get("left_out", {})
    if stored is None:
        missing, ignoring = missing_models(checked, new)
        if missing and not checked.spec.execution.allow_missing:
            raise ModelsMissing(_refusal(checked, missing, without=without))
        left = _without(checked, missing) if missing else checked
        return Presence(replace(left, left_out=dict(missing)), missing, ignoring)
    candidates = {each.model.name for each in checked.candidates}
    joining = [each for each in new if each.name in candidates]
    if not joining:
        return Presence(checked, {})
    unstructured: Mapping[str, str] = {}
    if checked.takes_more_candidates:
        missing, unstructured = missing_models(checked, joining)
    else:  # models that were missing at the start stay so; the check of the identity refuses others
        missing = {each.name: absent[each.name] for each in joining if each.name in absent}
    refused = {name: why for name, why in missing.items() if name not in absent}
    if refused and not checked.spec.execution.allow_missing:
        raise ModelsMissing(_refusal(checked, refused, goes_on=True))
    return Presence(_without(checked, missing) if missing else checked, missing, unstructured)


def missing_models(
    checked: ResolvedCampaign, models: Sequence[ModelRef]
) -> tuple[dict[str, str], dict[str, str]]:
    """Send a request to each of the given models, and find those that are missing.

    Returns:
        The cause for each missing model, and an output of each server that ignores `structured_output`. Both
        are by model name, in the given order.
    """
    served = [each for each in models if each.provider in REMOTE]
    found, unstructured = _answers(checked, served)
    if checked.spec.execution.cluster is None:  # machines of a cluster have their own caches
        for model in models:
            if (
                model not in served
                and model.provider not in AGENTS
                and (why := why_unknown_to_hub(model)) is not None
            ):
                found[model.name] = why
    missing = {each.name: found[each.name] for each in models if each.name in found}
    return missing, {each.name: unstructured[each.name] for each in models if each.name in unstructured}


def _structured_requests(
    checked: ResolvedCampaign, alike: Sequence[ModelRef], contact: Request
) -> list[Request]:
    """Short requests, one for each structure that candidates of one engine require."""
    names = {each.name for each in alike}
    structures = {
        each.sampling.structure: each.sampling
        for each in checked.candidates
        if each.model.name in names and each.sampling.structure is not None
    }
    return [
        replace(
            contact, sampling=replace(sampling, max_tokens=min(sampling.max_tokens, MOST_TOKENS), stop=())
        )
        for sampling in structures.values()
    ]


def _answers(checked: ResolvedCampaign, served: Sequence[ModelRef]) -> tuple[dict[str, str], dict[str, str]]:
    """Send requests to served models in parallel.

    Returns:
        The cause for each model without an answer, and outputs that ignore a required structure, by model
            name.
    """
    by_engine: dict[str, list[ModelRef]] = {}
    for model in served:
        by_engine.setdefault(engine_key(model), []).append(model)
    if not by_engine:
        return {}, {}
    # Imported here because a decided campaign sends no requests, and should answer at once.
    from winnow.tasks.campaign.contacts import OUT_OF_REACH, contact_request
    from winnow.tasks.campaign.placement import with_limits
    from winnow.tasks.engines.pool.pool import EnginePool
    from winnow.tasks.engines.pool.request_scheduler import RequestGroup

    execution = checked.spec.execution
    found: dict[str, str] = {}
    unstructured: dict[str, str] = {}
    alike = list(by_engine.values())
    groups = []
    for models in alike:
        contact = contact_request(models[0])
        requests = [contact, *_structured_requests(checked, models, contact)]
        groups.append(RequestGroup(model=models[0], requests=requests))
    with (
        EnginePool(
            log_folder=Path(execution.log_folder) / checked.spec.name,
            max_restarts=0,
            logs_ends=False,
            load_timeout=execution.load_timeout,
            batch_timeout=execution.batch_timeout,
            factory=with_limits(start_engine, execution),
        ) as engines,
        closing(engines.answers(groups)) as answered,
    ):
        for number, (answer, *structured) in answered:
            if isinstance(answer, GenerationFailure) and answer.reason in OUT_OF_REACH:
                found.update({each.name: _cause(answer.detail) for each in alike[number]})
            for request, other in zip(groups[number].requests[1:], structured, strict=True):
                structure = request.sampling.structure
                if isinstance(other, Completion) and structure and not can_begin(other.text, structure):
                    unstructured.update({each.name: other.text for each in alike[number]})
    return found, unstructured


def unstructured_words(unstructured: Mapping[str, str]) -> str:
    """Sentence on models whose servers ignore `structured_output`, with one output."""
    said = one_line(next(iter(unstructured.values())))
    shown = said if len(said) <= LONGEST_SHOWN else f"{said[: LONGEST_SHOWN - 1]}…"
    is_one = len(unstructured) == 1
    return (
        f"check: the {'server' if is_one else 'servers'} of {list_of(list(unstructured))} "
        f"{'ignores' if is_one else 'ignore'} structured_output (an answer began '{shown}'): use a server "
        "that supports it, or remove it; plain completions of llama.cpp ignore it (set chat: true)"
    )


def _cause(detail: str) -> str:
    """Why a model is missing, without the model's name at the beginning."""
    _, found, cause = detail.partition("': ")
    cause = cause if found else detail
    return cause if len(cause) <= LONGEST_CAUSE else f"{cause[: LONGEST_CAUSE - 1]}…"


def _without(checked: ResolvedCampaign, missing: Mapping[str, str]) -> ResolvedCampaign:
    """The campaign without the candidates of missing models.

    Raises:
        ModelsMissing: A missing model is required.
    """
    needed = [each.name for each in checked.models_needed if each.name in missing]
    if needed or all(each.model.name in missing for each in checked.candidates):
        raise ModelsMissing(_refusal(checked, missing))
    try:
        return check_campaign(_spec_without(checked, missing.keys()), checked.dataset)
    except SpecError as error:
        raise SpecError(f"without the missing {missing_words(missing)}: {error}") from error


def _spec_without(checked: ResolvedCampaign, names: Collection[str]) -> CampaignSpec:
    """The spec without some models and the settings of their candidates."""
    spec = checked.spec
    candidates = {each.name for each in checked.candidates if each.model.name in names}
    params = dict(spec.selector.params)
    if isinstance(costs := params.get("costs"), dict):
        params["costs"] = {name: cost for name, cost in costs.items() if name not in candidates}
    certify = spec.certify
    if certify is not None:
        left = {name: cost for name, cost in certify.costs.items() if name not in candidates}
        certify = certify.model_copy(update={"costs": left})
    others = {each.name for each in checked.judge_models}
    prices = {
        name: price for name, price in spec.execution.prices.items() if name not in names or name in others
    }
    return spec.model_copy(
        update={
            "models": [each for each in spec.models if each.name not in names],
            "exclude": [each for each in spec.exclude if each.model not in names],
            "selector": spec.selector.model_copy(update={"params": params}),
            "certify": certify,
            "execution": spec.execution.model_copy(update={"prices": prices}),
        }
    )


def _refusal(
    checked: ResolvedCampaign,
    missing: Mapping[str, str],
    *,
    goes_on: bool = False,
    without: str = ALLOW_MISSING,
) -> str:
    """Sentence with all missing models, their causes, and the remedy."""
    needed = [each.name for each in checked.models_needed if each.name in missing]
    is_all = all(each.model.name in missing for each in checked.candidates)
    remedy = "correct them or start their servers"
    if needed:
        remedy += f" (the campaign needs {list_of(needed)})"
    elif not is_all and not checked.spec.execution.allow_missing:
        remedy += f", or {without.replace('begin', 'continue', 1) if goes_on else without}"
    so_far = "nothing changed" if goes_on else "no output was requested yet"
    of = count_of(len(checked.models_to_ask), "model")
    return f"{len(missing)} of {of} cannot be used: {missing_words(missing)}; {so_far}; {remedy}"


def missing_words(missing: Mapping[str, str]) -> str:
    """Names of missing models with their causes in brackets, grouped by cause."""
    by_cause: dict[str, list[str]] = {}
    for name, cause in missing.items():
        by_cause.setdefault(cause, []).append(name)
    return ", and ".join(f"{_quoted(names)} ({cause})" for cause, names in by_cause.items())


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
