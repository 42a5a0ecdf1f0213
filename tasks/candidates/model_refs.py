"""From a model in a spec, a candidate's or a judge's, to what an engine is asked for."""

from pathlib import Path

from winnow.tasks.candidates.server_keys import base_url_of, is_openais_own, key_in, key_variable
from winnow.tasks.engines.chat.reasoning import Reasoning
from winnow.tasks.engines.chat.template_files import own_template
from winnow.tasks.engines.checkpoints import adapter_rank
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.litellm.apis import api_of, why_unaskable
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import ADAPTING, PROVIDERS, REMOTE, provider_names
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.sections.models import ModelSpec

COMPLETING = ("gpt-3.5-turbo-instruct", "babbage-002", "davinci-002")
"""Models of OpenAI's own server that do not chat, and those that were trained further from them."""


def model_ref(model: ModelSpec, place: str) -> ModelRef:
    """All that is needed to load a model.

    Args:
        model: As in the spec.
        place: Where it stands there, such as "models[0]".

    Raises:
        SpecError: If there is no such provider, no checkpoint in the folder, no adapter in the one for it, or
            no key of the server.
    """
    if model.provider not in provider_names():
        raise SpecError(unknown_name("provider", model.provider, provider_names()), path=f"{place}.provider")
    remote = model.provider in REMOTE
    if model.provider == "litellm":
        _check_litellm(model, place)
    url = base_url_of(model.provider, model.model, model.model_base_url)
    variable = key_variable(url, model.api_key) if remote else None
    if variable is not None:
        _refuse_missing_key(variable, place)
    if not remote:
        _refuse_missing_checkpoint(model.model, place)
    _check_adapter(model, place)
    template = None if model.chat_template is None else _template(model.chat_template, place)
    _check_chat(model, template, place)
    return ModelRef(
        name=model.name,
        provider=model.provider,
        model=model.model,
        revision=model.revision,
        model_args=model.model_args,
        chat=model.chat,
        chat_template=template,
        chat_template_args=model.chat_template_args,
        model_base_url=url,
        api_key=variable,
        served_identity=model.served_identity,
        lora=model.lora,
        reasoning=None
        if model.reasoning is None
        else Reasoning(model.reasoning.parser, model.reasoning.strip, model.reasoning.begins_inside),
    )


def _check_litellm(model: ModelSpec, place: str) -> None:
    """Refuse what cannot be asked through litellm, and what would need more than what the spec names."""
    if why := why_unaskable(model.model, chat=model.chat, model_args=model.model_args):
        raise SpecError(why[1], path=f"{place}.{why[0]}")
    api = api_of(model.model)
    assert api is not None
    if model.model_base_url is None and api.origin is None:
        raise SpecError(
            "this API has another address for each customer, and no key is sent to one that is not named; "
            "give it",
            path=f"{place}.model_base_url",
        )
    if model.model_base_url is None and model.api_key is None:
        raise SpecError(
            f"litellm gets no key but the one that is named here; give its variable, such as {api.variable}",
            path=f"{place}.api_key",
        )
    for key in ("chat_template", "chat_template_args", "revision"):
        if getattr(model, key):
            raise SpecError("no API that litellm speaks takes one; leave it out", path=f"{place}.{key}")


def _refuse_missing_key(variable: str, place: str) -> None:
    if not key_in(variable):
        raise SpecError(
            f"the environment variable {variable} is not set; export it with the key of the server",
            path=f"{place}.api_key",
        )


def _refuse_missing_checkpoint(model: str, place: str) -> None:
    folder = Path(model)
    is_local = folder.is_dir() or model.startswith((".", "/", "~")) or model.count("/") != 1
    if is_local and not (folder / "config.json").is_file():
        raise SpecError(
            f"there is no checkpoint in '{model}' (looked for config.json in "
            f"{folder.absolute()}); give a saved model's folder or an id on a hub (owner/name)",
            path=f"{place}.model",
        )


def _check_adapter(model: ModelSpec, place: str) -> None:
    if model.lora is None:
        return
    if model.provider not in ADAPTING:
        able = " or ".join(sorted(ADAPTING))
        raise SpecError(
            f"provider '{model.provider}' puts no adapter on a model; use provider {able}",
            path=f"{place}.lora",
        )
    try:
        adapter_rank(Path(model.lora))
    except ValueError as error:
        raise SpecError(str(error), path=f"{place}.lora") from error


def _template(path: str, place: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(
            f"the chat template {path} cannot be read as text ({one_sentence(error)}); correct the path",
            path=f"{place}.chat_template",
        ) from error


def _check_chat(model: ModelSpec, template: str | None, place: str) -> None:
    """Refuse a model that is to chat and cannot, and one that can do nothing else and is not to."""
    if model.provider == "litellm":
        return
    if model.provider in REMOTE:
        completes = any(each in model.model for each in COMPLETING)
        if is_openais_own(model.model_base_url) and not (model.chat or completes):
            raise SpecError(
                f"OpenAI's own server has {model.model} for chats alone; set chat: true",
                path=f"{place}.chat",
            )
        return
    folder = Path(model.model)
    needs_one = model.chat and template is None and model.provider in PROVIDERS  # a plug-in may have its own
    if needs_one and folder.is_dir() and own_template(folder) is None:
        raise SpecError(
            f"the checkpoint in {folder} has no chat template; set chat: false, name a chat_template, or "
            "choose a checkpoint trained to chat",
            path=f"{place}.chat",
        )
