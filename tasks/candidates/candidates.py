"""Candidates of a campaign, from models x prompts x sampling settings; candidate k is arm k."""

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import NamedTuple, Self

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.candidates.few_shot import draw_few_shot
from winnow.tasks.candidates.model_refs import model_ref, sampling_of
from winnow.tasks.candidates.prompt_template import GUARDED, PromptTemplate, WholeExample, as_record
from winnow.tasks.data.datasets import Dataset
from winnow.tasks.data.sandboxed_templates import Template, compile_template
from winnow.tasks.engines.agents.kit.engine import NEEDS_COST
from winnow.tasks.engines.chat import Prompt, Reasoning
from winnow.tasks.engines.known_providers import AGENTS, FUNCTION
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.engines.server_keys import SERVER_KEYS, is_openais_own
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.campaign import CampaignSpec, Exclusion, GuardrailSpec
from winnow.tasks.spec.sections.generate_config import GenerateConfig, NamedGenerateConfig
from winnow.tasks.spec.sections.models import AgentModelSpec, ModelSpec, places_of
from winnow.tasks.spec.sections.prompts import PromptSpec

MOST_CANDIDATES = 1_000_000
"""Maximum number of candidates before exclusions."""


class Names(NamedTuple):
    """Names of a candidate's model, prompt, guardrail and settings; None for an unused part."""

    model: str | None
    prompt: str | None
    guardrail: str | None
    sampling: str | None

    @property
    def joined(self) -> str:
        """Name of the candidate, such as "model/prompt"."""
        return "/".join(name for name in self if name is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One model x prompt (x guardrail) x sampling settings."""

    names: Names
    model: ModelRef
    fingerprint: str
    """Identity of the model's weights; see `fingerprint_model`."""
    template: PromptTemplate
    prompt_record: JsonView
    """The prompt as stored in the database."""
    guardrail: Template | None
    sampling: Sampling

    @property
    def name(self) -> str:
        """Names of the candidate's parts, joined by slashes."""
        return self.names.joined

    @property
    def choices(self) -> dict[str, str]:
        """Names of the candidate's parts, by kind: model, prompt, guardrail, generate_config."""
        kinds = ("model", "prompt", "guardrail", "generate_config")
        return {kind: name for kind, name in zip(kinds, self.names, strict=True) if name is not None}

    def prompt(self, fields: JsonView, key: str) -> Prompt:
        """Render the prompt for one example, with the guardrail; raises `TemplateError`."""
        return self.template.render(fields, key, self.guardrail)

    def as_record(self) -> NewCandidate:
        """The candidate as stored in the database."""
        prompt = dict(self.prompt_record)
        if self.guardrail is not None:
            prompt["guardrail"] = {"name": self.names.guardrail, "template": self.guardrail.source}
        left_out = (*SERVER_KEYS, "setup")
        model = {key: value for key, value in asdict(self.model).items() if key not in left_out}
        for key in ABSENT_WHERE_NONE:
            if model[key] in (None, False):
                del model[key]
        return NewCandidate(
            name=self.name,
            model={**model, "fingerprint": self.fingerprint},
            prompt=prompt,
            sampling=self.sampling.as_json(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCandidate:
    """A candidate read from the database: enough for its requests, without its checkpoint."""

    model: ModelRef
    fingerprint: str
    template: PromptTemplate
    guardrail: Template | None
    sampling: Sampling

    @classmethod
    def from_record(cls, record: NewCandidate, fields: Collection[str]) -> Self:
        """Read a record that `Candidate.as_record` wrote.

        Args:
            record: The stored record.
            fields: Names of the example fields available to templates.

        Raises:
            TemplateError: If a template is refused.
            KeyError, TypeError, ValueError: If the record was not written by Winnow.
        """
        model = dict(record.model)
        fingerprint = str(model.pop("fingerprint"))
        if (reasoning := model.get("reasoning")) is not None:
            model["reasoning"] = Reasoning(*reasoning)
        prompt = dict(record.prompt)
        guardrail = prompt.pop("guardrail", None)
        return cls(
            model=ModelRef(**model),
            fingerprint=fingerprint,
            template=_stored_template(prompt, fields, is_agent=model["provider"] in AGENTS),
            guardrail=None if guardrail is None else compile_template(guardrail["template"], [GUARDED]),
            sampling=Sampling.from_json(record.sampling),
        )

    def prompt(self, fields: JsonView, key: str) -> Prompt:
        """Render the prompt for one example, like `Candidate.prompt`."""
        return self.template.render(fields, key, self.guardrail)


def _stored_template(prompt: JsonView, fields: Collection[str], *, is_agent: bool) -> PromptTemplate:
    if not is_agent:
        return PromptTemplate.from_record(prompt, fields)
    return WholeExample.around(PromptTemplate.from_record(prompt, fields) if prompt else None)


ABSENT_WHERE_NONE = ("lora", "chat_template", "reasoning", "entry", "params", "shows_images")
"""Keys of a stored model that are absent if null or false, so that a candidate without an adapter has the
same form as before adapters existed."""


def build_candidates(spec: CampaignSpec, dataset: Dataset, *, is_allowed: bool = True) -> list[Candidate]:
    """All candidates of a campaign, ordered by model, prompt, guardrail, then sampling.

    Raises:
        SpecError: If a model's folder is missing, a template is refused, an exclusion names an unknown part,
            a prompt requires a chat model and a model is not one, or too few candidates are left: two are
            needed to compare, one to certify.
    """
    _refuse_too_many(spec)
    templates = [_prompt_template(spec, index, dataset, is_allowed) for index in range(len(spec.prompts))]
    prompts = list(zip(spec.prompts, templates, strict=True)) or NO_PROMPT
    whole = [WholeExample.around(template) for _, template in prompts]
    guardrails = [(each, _guardrail(each, index)) for index, each in enumerate(spec.guardrails)]
    places = places_of(spec.models)
    models = [
        _with_images(_with_cost(model_ref(model, place), spec), spec)
        for model, place in zip(spec.models, places, strict=True)
    ]
    fingerprints = [_fingerprint(model, place) for model, place in zip(models, places, strict=True)]
    _refuse_idle_exclusions(spec)
    candidates = [
        Candidate(
            names=Names(
                model.name,
                _prompt_name(model, prompt),
                None if guardrail is None else guardrail.name,
                None if config is None else config.name,
            ),
            model=ref,
            fingerprint=fingerprint,
            template=around if template is None or isinstance(model, AgentModelSpec) else template,
            prompt_record={} if prompt is None else as_record(prompt, around.few_shot),
            guardrail=guardrail_template,
            sampling=sampling_of(merged, model, partial(_place_of, spec, model, config)),
        )
        for model, ref, fingerprint in zip(spec.models, models, fingerprints, strict=True)
        for (prompt, template), around in zip(prompts, whole, strict=True)
        for guardrail, guardrail_template in guardrails or NO_GUARDRAIL
        for config, merged in _generate_configs(spec, model)
    ]
    candidates = [each for each in candidates if not any(_matches(rule, each.names) for rule in spec.exclude)]
    _refuse_too_few(spec, candidates)
    _refuse_chats_without_chat(spec, candidates)
    _refuse_open_chats(spec, candidates)
    return candidates


def candidate_names(spec: CampaignSpec) -> list[Names]:
    """Names of each candidate's parts, in the order of `build_candidates`; reads no files."""
    found = [
        Names(
            model.name,
            _prompt_name(model, prompt),
            None if guardrail is None else guardrail.name,
            None if config is None else config.name,
        )
        for model in spec.models
        for prompt in spec.prompts or (None,)
        for guardrail in spec.guardrails or (None,)
        for config in spec.generate_configs or (None,)
    ]
    return [each for each in found if not any(_matches(rule, each) for rule in spec.exclude)]


def _prompt_name(model: ModelSpec, prompt: PromptSpec | None) -> str | None:
    return None if prompt is None or model.provider == FUNCTION else prompt.name


def _with_cost(model: ModelRef, spec: CampaignSpec) -> ModelRef:
    """Require an agent to report its cost if the budget limits costs and no price is set."""
    if model.provider in AGENTS and "cost" in spec.limits and model.name not in spec.execution.prices:
        return replace(model, setup={**model.setup, NEEDS_COST: True})
    return model


def _with_images(model: ModelRef, spec: CampaignSpec) -> ModelRef:
    """Return the model, which is shown the images of examples unless it is an agent."""
    return replace(model, shows_images=bool(spec.dataset.images) and model.provider not in AGENTS)


def _fingerprint(model: ModelRef, place: str) -> str:
    """Identity of a model; raises `SpecError` if an agent's code cannot be read."""
    try:
        return fingerprint_model(model)
    except ValueError as error:
        if model.provider not in AGENTS:
            raise
        raise SpecError(str(error), path=place) from error


NO_PROMPT: list[tuple[PromptSpec | None, PromptTemplate | None]] = [(None, None)]


def _refuse_too_few(spec: CampaignSpec, candidates: Sequence[Candidate]) -> None:
    """Refuse fewer candidates than the objective needs."""
    fewest = traits_of(spec.objective).fewest_candidates
    if len(candidates) >= fewest:
        return
    needed = "one candidate to certify is" if fewest == 1 else "two candidates to compare are"
    raise SpecError(
        f"at least {needed} needed, but the campaign has {len(candidates)}; "
        "add a model, a prompt or a generate_config, or exclude fewer candidates",
        path="models",
    )


def _prompt_template(spec: CampaignSpec, index: int, dataset: Dataset, is_allowed: bool) -> PromptTemplate:
    path = f"prompts[{index}]"
    few_shot = draw_few_shot(spec, index, dataset, f"{path}.few_shot", is_allowed=is_allowed)
    return PromptTemplate.compile(spec.prompts[index], dataset.field_names, path, few_shot)


def _refuse_chats_without_chat(spec: CampaignSpec, candidates: Sequence[Candidate]) -> None:
    """Refuse prompts of messages for models that are not chat models."""
    places = {prompt.name: index for index, prompt in enumerate(spec.prompts)}
    for each in candidates:
        if each.template.is_chat and not each.model.chat:
            prompt = spec.prompts[places[str(each.names.prompt)]]
            keys = {"system": prompt.system, "messages": prompt.messages}
            key = next(
                (key for key, value in keys.items() if value is not None), "few_shot.fewshot_as_multiturn"
            )
            raise SpecError(
                f"needs a chat model, but '{each.model.name}' is not a chat model; set chat: true for it, or "
                f"exclude {{model: {each.model.name}, prompt: {prompt.name}}}",
                path=f"prompts[{places[prompt.name]}].{key}",
            )


def _refuse_open_chats(spec: CampaignSpec, candidates: Sequence[Candidate]) -> None:
    """Refuse prompts that end with the assistant's message for APIs that do not continue it.

    OpenAI's own server starts a new answer instead, as some APIs of litellm do. Other servers are tried.
    """
    for each in candidates:
        is_litellm = each.model.provider == "litellm"
        is_openai = each.model.provider == "openai" and is_openais_own(each.model.model_base_url)
        if (is_openai or is_litellm) and each.template.is_continued:
            whose = "some APIs of litellm do not" if is_litellm else "OpenAI's own server does not"
            places = [at for at, prompt in enumerate(spec.prompts) if prompt.name == each.names.prompt]
            raise SpecError(
                f"{whose} continue an assistant's message, but model '{each.model.name}' "
                f"uses it; end messages with one of the user, or exclude "
                f"{{model: {each.model.name}, prompt: {each.names.prompt}}}",
                path=f"prompts[{places[0]}].messages",
            )


def _refuse_too_many(spec: CampaignSpec) -> None:
    crossed: list[Sequence[object]] = [spec.models, spec.prompts, spec.guardrails, spec.generate_configs]
    number = math.prod(max(1, len(each)) for each in crossed)
    if number > MOST_CANDIDATES:
        raise SpecError(
            f"models x prompts x guardrails x generate_configs are {number} candidates; name fewer of each, "
            f"so that at most {MOST_CANDIDATES} candidates result",
            path="models",
        )


NO_GUARDRAIL: list[tuple[GuardrailSpec | None, Template | None]] = [(None, None)]


def _guardrail(guardrail: GuardrailSpec, index: int) -> Template:
    path = f"guardrails[{index}].template"
    template = compile_template(guardrail.template, [GUARDED], path)
    if GUARDED not in template.variables:
        raise SpecError("the template does not use the prompt; insert {{ prompt }}", path=path)
    return template


def _generate_configs(
    spec: CampaignSpec, model: ModelSpec
) -> list[tuple[NamedGenerateConfig | None, GenerateConfig]]:
    """Sampling settings for a model, each with its named setting or None.

    Each named setting of the campaign overrides the model's own keys. Without named settings, the model has
    only its own.
    """
    if not spec.generate_configs:
        return [(None, model.generate_config)]
    merged: list[tuple[NamedGenerateConfig | None, GenerateConfig]] = []
    for named in spec.generate_configs:
        merged.append((named, model.generate_config.model_copy(update=named.given())))
    return merged


def _place_of(spec: CampaignSpec, model: ModelSpec, named: NamedGenerateConfig | None, key: str) -> str:
    """Key in the spec that sets a value of a candidate's sampling."""
    if named is not None and key in named.model_fields_set:
        return f"generate_configs[{spec.generate_configs.index(named)}].{key}"
    return f"models[{spec.models.index(model)}].generate_config.{key}"


def _matches(rule: Exclusion, names: Names) -> bool:
    wanted = Names(rule.model, rule.prompt, rule.guardrail, rule.generate_config)
    return all(each in (None, name) for each, name in zip(wanted, names, strict=True))


def _refuse_idle_exclusions(spec: CampaignSpec) -> None:
    """Refuse an exclusion of an unknown name, because a typing error would keep the candidate."""
    known = {
        "model": {model.name for model in spec.models},
        "prompt": {prompt.name for prompt in spec.prompts},
        "guardrail": {guardrail.name for guardrail in spec.guardrails},
        "generate_config": {config.name for config in spec.generate_configs},
    }
    for index, rule in enumerate(spec.exclude):
        for key, names in known.items():
            name = getattr(rule, key)
            if name is not None and name not in names:
                raise SpecError(unknown_name(key, name, sorted(names)), path=f"exclude[{index}].{key}")
