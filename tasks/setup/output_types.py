"""Check the output type of a campaign: generated text, or log-likelihoods."""

import re
from collections.abc import Iterator

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.tasks.campaign.resolved import ResolvedCampaign
from winnow.tasks.candidates.likelihood_scoring import Choices, FirstTargets, Weighing, weighing_of
from winnow.tasks.engines.known_providers import AGENTS, REMOTE
from winnow.tasks.engines.server_keys import is_openais_own
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.spec.campaign import CampaignSpec, JudgeSpec, OutputType
from winnow.tasks.spec.sections.generate_config import GenerateConfig, StructuredOutput
from winnow.tasks.spec.sections.models import ModelSpec

CHECK_SCHEMA = "winnow.tasks.judges.isolated.json_schema:check_schema"
"""Import path of the function, so that campaigns without schemas do not import it."""

NEEDED: dict[str, OutputType] = {
    "acc": "multiple-choice",
    "acc_norm": "multiple-choice",
    "bits_per_byte": "perplexity",
    "byte_perplexity": "perplexity",
    "greedy": "loglikelihood",
    "word_perplexity": "perplexity",
}
"""Output type that each judge of log-likelihoods needs, by judge."""


def check_output_type(checked: ResolvedCampaign) -> Weighing | None:
    """Check the output type; return the rules for the texts that models score.

    None if models generate.

    Raises:
        SpecError: Other keys of the spec are incompatible with its output_type, or an example has no choices,
            or no choice that is its target.
    """
    spec = checked.spec
    _check_judge(spec, spec.judge, "judge")
    for index, metric in enumerate(spec.metrics):
        _check_judge(spec, metric.judge, f"metrics[{index}].judge")
    _check_choices(spec)
    if spec.output_type == "generate":
        return None
    _refuse_sampling(spec)
    if spec.output_type == "loglikelihood" and traits_of(spec.objective).measures_risk:
        raise SpecError(
            "output_type: loglikelihood generates no text that people can label, which certify needs; use "
            "objective: best-mean",
            path="output_type",
        )
    if spec.output_type == "perplexity":
        _refuse_other_texts(spec)
    for index, model in enumerate(spec.models):
        _refuse_unable(spec.output_type, model, f"models[{index}]")
    examples = checked.dataset.examples
    targets = {each.key: each.targets for each in examples} if spec.output_type == "loglikelihood" else {}
    fields = checked.dataset.field_names
    found = weighing_of(spec.output_type, spec.choices, spec.target_delimiter, fields, targets)
    if isinstance(found, Choices):
        _try_choices(checked, found)
    if isinstance(found, FirstTargets):
        for example in examples:
            found.of(example.key)
    return found


def _check_judge(spec: CampaignSpec, given: JudgeSpec, place: str) -> None:
    for judge in given.tree(place).walk():
        name = str(judge.type)
        needed = NEEDED.get(name, spec.output_type)
        if needed != spec.output_type:
            raise SpecError(
                f"judge {name} reads log-likelihoods of output_type: {needed}; set output_type, or choose "
                "another judge",
                path=f"{judge.place}.type",
            )
    own = given.type
    if spec.output_type == "perplexity" and own not in NEEDED:
        fitting = ", ".join(name for name, needed in NEEDED.items() if needed == "perplexity")
        raise SpecError(
            f"models generate no text with output_type: perplexity; choose {fitting}", f"{place}.type"
        )
    if own in NEEDED and given.params.get("extract") is not None:
        raise SpecError(
            f"judge {own} reads log-likelihoods instead of text; remove extract", path=f"{place}.extract"
        )


def _check_choices(spec: CampaignSpec) -> None:
    if spec.output_type == "multiple-choice":
        if spec.choices is None:
            raise SpecError(
                "output_type: multiple-choice needs choices; add choices: {field: NAME}, or texts",
                path="choices",
            )
        return
    if spec.choices is not None:
        raise SpecError(
            "choices needs output_type: multiple-choice; set output_type, or remove choices", path="choices"
        )
    if spec.target_delimiter is not None and spec.output_type != "loglikelihood":
        raise SpecError(
            "target_delimiter needs output_type: multiple-choice or loglikelihood; set one of them, or "
            "remove target_delimiter",
            path="target_delimiter",
        )


def _refuse_sampling(spec: CampaignSpec) -> None:
    if spec.generate_configs:
        raise SpecError(
            f"nothing is sampled with output_type: {spec.output_type}; remove generate_configs",
            path="generate_configs",
        )
    for index, model in enumerate(spec.models):
        if model.generate_config != GenerateConfig():
            raise SpecError(
                f"nothing is sampled with output_type: {spec.output_type}; remove generate_config",
                path=f"models[{index}].generate_config",
            )


def _refuse_other_texts(spec: CampaignSpec) -> None:
    if traits_of(spec.objective).measures_risk:
        raise SpecError(
            "output_type: perplexity has no human labels, which certify needs; use objective: best-mean",
            path="output_type",
        )
    for key in ("prompts", "guardrails"):
        if len(getattr(spec, key)) > (key == "prompts"):
            raise SpecError(
                "output_type: perplexity scores the prompt itself, and cannot compare different prompts; "
                "give one prompt, such as '{{ input }}', and no guardrails",
                path=key,
            )


def _refuse_unable(output_type: OutputType, model: ModelSpec, place: str) -> None:
    if model.reasoning is not None:
        raise SpecError(
            f"no reasoning is generated with output_type: {output_type}; remove reasoning",
            path=f"{place}.reasoning",
        )
    if model.provider in AGENTS:
        raise SpecError(
            f"an agent returns no log-likelihoods, which output_type: {output_type} needs; remove the agent",
            path=f"{place}.provider",
        )
    if model.provider == "litellm":
        raise SpecError(
            "litellm returns no log-likelihoods; choose provider vllm or transformers, or a vLLM server",
            path=f"{place}.provider",
        )
    remote = model.provider in REMOTE
    if remote and output_type == "perplexity" and is_openais_own(model.model_base_url):
        raise SpecError(
            "OpenAI's own server returns no log-likelihood of a text; choose provider vllm or transformers, "
            "or a vLLM server",
            path=f"{place}.provider",
        )
    if model.chat and output_type == "perplexity":
        raise SpecError(
            "output_type: perplexity scores a text without a chat template; remove chat", path=f"{place}.chat"
        )
    if model.chat and remote:
        raise SpecError(
            "a server returns no log-likelihoods of a chat; remove chat, or choose provider vllm or "
            "transformers",
            path=f"{place}.chat",
        )


def _try_choices(checked: ResolvedCampaign, choices: Choices) -> None:
    """Refuse an example that has no choices, or no choice that is its target."""
    judge = checked.spec.judge
    scorer = create_judge(judge.type, **judge.params) if judge.type in NEEDED else None
    for example in checked.dataset.examples:
        found = choices.of(example.fields, example.key)
        sample = Sample(output="", targets=example.targets, choices=found, loglikelihoods=[0.0] * len(found))
        if scorer is not None and scorer.judge(sample).reason == "unreadable_target":
            raise SpecError(
                f"the target {example.targets[0]!r} of example {example.key!r} is not one of its choices "
                f"({', '.join(map(repr, found))[:200]}); correct it, or choose between judge.target: text "
                "(a choice) and index (its position, from 0)",
                path="judge.target",
            )


def check_structured_outputs(spec: CampaignSpec) -> None:
    """Refuse a regex that does not compile, and an invalid JSON schema.

    Schemas are only checked if jsonschema is installed. Engines report unsupported features themselves; only
    they can check grammars.

    Raises:
        SpecError: A structured output is invalid; gives the key.
    """
    for place, given in _places(spec):
        if given.regex is not None:
            _check_regex(given.regex, f"{place}.regex")
        if given.json_schema is not None and missing_for("judges", place) is None:
            try:
                object_at(CHECK_SCHEMA)(given.json_schema, f"{place}.json_schema")
            except JudgeError as error:
                raise SpecError(error.message, path=error.path) from error


def _check_regex(pattern: str, place: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise SpecError(
            f"{pattern!r} is not a regular expression ({error}); correct it", path=place
        ) from error


def _places(spec: CampaignSpec) -> Iterator[tuple[str, StructuredOutput]]:
    configs = [(f"models[{i}].generate_config", each.generate_config) for i, each in enumerate(spec.models)]
    configs += [(f"generate_configs[{i}]", each) for i, each in enumerate(spec.generate_configs)]
    for place, config in configs:
        if config.structured_output is not None:
            yield f"{place}.structured_output", config.structured_output
