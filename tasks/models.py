"""From a model in a spec, a candidate's or a judge's, to what an engine is asked for."""

from pathlib import Path

from tasks.engines.protocol import ModelRef, Sampling
from tasks.engines.providers import PROVIDERS
from tasks.errors import SpecError
from tasks.spec import GenerateConfig, ModelSpec
from tasks.suggestions import unknown_name


def model_ref(model: ModelSpec, place: str) -> ModelRef:
    """All that is needed to load a model.

    Args:
        model: As in the spec.
        place: Where it stands there, such as "models[0]".

    Raises:
        SpecError: If there is no such provider, or no checkpoint in the folder.
    """
    if model.provider not in PROVIDERS:
        raise SpecError(unknown_name("provider", model.provider, sorted(PROVIDERS)), path=f"{place}.provider")
    folder = Path(model.model)
    is_local = folder.is_dir() or model.model.startswith((".", "/", "~")) or model.model.count("/") != 1
    if is_local and not (folder / "config.json").is_file():
        raise SpecError(
            f"there is no checkpoint in '{model.model}' (looked for config.json in "
            f"{folder.absolute()}); give a saved model's folder or an id on a hub (owner/name)",
            path=f"{place}.model",
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


def sampling_of(config: GenerateConfig) -> Sampling:
    """How text is sampled, as an engine takes it."""
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        max_tokens=config.max_tokens,
        stop=tuple(config.stop_seqs),
    )
