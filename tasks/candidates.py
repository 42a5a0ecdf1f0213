"""From models x prompts x ways of sampling to the list of candidates; candidate k is arm k."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from storage.records import NewCandidate
from tasks.engines.protocol import ModelRef, Sampling
from tasks.engines.providers import PROVIDERS
from tasks.errors import SpecError
from tasks.identity import fingerprint_model
from tasks.spec import CampaignSpec, Exclusion, GenerateConfig, ModelSpec, PromptSpec
from tasks.suggestions import unknown_name
from tasks.templates import Template, compile_template


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One model x prompt x sampling."""

    name: str
    model: ModelRef
    fingerprint: str
    """What the model's weights are; see `fingerprint_model`."""
    prompt_name: str
    template_source: str
    template: Template
    sampling: Sampling

    def as_record(self) -> NewCandidate:
        """What the database keeps of it."""
        return NewCandidate(
            name=self.name,
            model={**asdict(self.model), "fingerprint": self.fingerprint},
            prompt={"name": self.prompt_name, "template": self.template_source},
            sampling=asdict(self.sampling),
        )


def build_candidates(spec: CampaignSpec, fields: Sequence[str]) -> list[Candidate]:
    """All candidates of a campaign, models first, then prompts, then ways of sampling.

    Args:
        spec: The campaign.
        fields: What a template may show of an example.

    Raises:
        SpecError: If a model's folder is missing, a template is refused, an exclusion matches nothing,
            or fewer than two candidates are left.
    """
    templates = [
        compile_template(prompt.template, fields, f"prompts[{index}].template")
        for index, prompt in enumerate(spec.prompts)
    ]
    models = [_model_ref(model, index) for index, model in enumerate(spec.models)]
    fingerprints = [fingerprint_model(model) for model in models]
    _refuse_idle_exclusions(spec)
    candidates = [
        Candidate(
            name="/".join(filter(None, (model.name, prompt.name, config_name))),
            model=models[m],
            fingerprint=fingerprints[m],
            prompt_name=prompt.name,
            template_source=prompt.template,
            template=templates[p],
            sampling=_sampling(config),
        )
        for m, model in enumerate(spec.models)
        for p, prompt in enumerate(spec.prompts)
        for config_name, config in _generate_configs(spec, model)
        if not any(_matches(rule, model, prompt, config_name) for rule in spec.exclude)
    ]
    if len(candidates) < 2:
        raise SpecError(
            f"there must be at least two candidates to compare, the campaign has {len(candidates)}; "
            "add a model, a prompt or a generate_config, or exclude fewer",
            path="models",
        )
    return candidates


def _model_ref(model: ModelSpec, index: int) -> ModelRef:
    if model.provider not in PROVIDERS:
        raise SpecError(
            unknown_name("provider", model.provider, sorted(PROVIDERS)),
            path=f"models[{index}].provider",
        )
    folder = Path(model.model)
    is_local = folder.is_dir() or model.model.startswith((".", "/", "~")) or model.model.count("/") != 1
    if is_local and not (folder / "config.json").is_file():
        raise SpecError(
            f"there is no checkpoint in '{model.model}' (looked for config.json in "
            f"{folder.absolute()}); give a saved model's folder or an id on a hub (owner/name)",
            path=f"models[{index}].model",
        )
    return ModelRef(
        name=model.name,
        provider=model.provider,
        model=model.model,
        revision=model.revision,
        model_args=model.model_args,
        chat=model.chat,
        chat_template_args=model.chat_template_args,
    )


def _generate_configs(spec: CampaignSpec, model: ModelSpec) -> list[tuple[str | None, GenerateConfig]]:
    """Each named way of sampling, on top of the model's own settings."""
    if not spec.generate_configs:
        return [(None, model.generate_config)]
    merged = []
    for named in spec.generate_configs:
        given = named.model_dump(exclude_unset=True, exclude={"name"})
        merged.append((named.name, model.generate_config.model_copy(update=given)))
    return merged


def _sampling(config: GenerateConfig) -> Sampling:
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        max_tokens=config.max_tokens,
        stop=tuple(config.stop_seqs),
    )


def _matches(rule: Exclusion, model: ModelSpec, prompt: PromptSpec, config_name: str | None) -> bool:
    return (
        rule.model in (None, model.name)
        and rule.prompt in (None, prompt.name)
        and rule.generate_config in (None, config_name)
    )


def _refuse_idle_exclusions(spec: CampaignSpec) -> None:
    """An exclusion of a name that is not there is a typing mistake, and would silently keep the candidate."""
    known = {
        "model": {model.name for model in spec.models},
        "prompt": {prompt.name for prompt in spec.prompts},
        "generate_config": {config.name for config in spec.generate_configs},
    }
    for index, rule in enumerate(spec.exclude):
        for key, names in known.items():
            name = getattr(rule, key)
            if name is not None and name not in names:
                raise SpecError(unknown_name(key, name, sorted(names)), path=f"exclude[{index}].{key}")
