"""Engines by provider: which engine serves a model reference, on which devices.

Modules of engines, and with them torch or vLLM, are imported only when an engine starts.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.algorithms.state.plugin_registry import object_at, plugins
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.known_providers import ELSEWHERE, FUNCTION, PROVIDERS, WIDTH_ARGS
from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.plugins.allowed_code import require_code_allowed
from winnow.tasks.plugins.extras import Extra, require


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of engines; only `is_fresh` can change an engine's answers."""

    log_folder: Path
    """Folder for the output of engines that run in separate processes."""
    load_timeout: float = 600.0
    """Maximum seconds for loading a model."""
    batch_timeout: float | None = 600.0
    """Maximum seconds of a batch; if an engine works on several batches, maximum seconds without any answer.
    None means no limit."""
    max_connections: int = 64
    """Maximum number of concurrent requests to a server."""
    request_timeout: float = 120.0
    """Maximum seconds for a server's answer to one request."""
    max_retries: int = 5
    """Maximum number of times that a request to a server is repeated."""
    devices: tuple[int, ...] = ()
    """Devices of the engine, by CUDA number; if empty, the engine chooses."""
    memory_share: float = 1.0
    """Share of its devices' memory, for an engine that takes all by default; below 1 if the devices are
    shared."""
    sleeps: bool = False
    """Whether the engine must be able to sleep, if its device allows it."""
    is_fresh: bool = False
    """Whether the engine must discard computed state between calls, so that no call depends on earlier ones.
    """
    adapters: tuple[str, ...] = ()
    """Folders of the LoRA adapters that requests may name."""


EngineFactory = Callable[[ModelRef, EngineSettings], Engine]

OF_PLUGINS = "winnow.tasks.engines.external.plugin:PluginEngine"
"""Import path of the class that starts a plug-in's engine; imported only if a campaign needs it."""

TAKES_NO_DEVICE = "winnow.tasks.engines.external.plugin:takes_no_device"
"""Import path of the function that returns whether a plug-in's engine needs no device."""

GROUP = "winnow.engines"
"""Entry-point group of third-party providers, each an `EngineFactory`; they cannot replace a built-in one."""

EXTRAS: dict[str, Extra] = {"litellm": "litellm", "transformers": "local", "vllm": "vllm"}
"""Provider -> the extra that installs its packages."""

ADAPTING = frozenset({"vllm"})
"""Providers that support LoRA adapters."""


def provider_names() -> list[str]:
    """Provider names allowed in a file, built in or from plug-ins, sorted; imports no plug-in."""
    return sorted({*PROVIDERS, *plugins(GROUP)} - {FUNCTION})


def is_provider(name: str) -> bool:
    """Whether a provider exists; searches plug-ins last, because listing them is slow."""
    return name in PROVIDERS or name in plugins(GROUP)


def start_engine(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start the engine of the model's provider; it may still be loading on return.

    Raises:
        EngineLoadFailed: If the provider does not exist or refuses the model.
        ExtraMissing: If the provider's packages are not installed.
        NotAllowed: If the engine would run code that the user has not permitted.
        PluginFailed: If the provider is a plug-in and raises any other exception.
    """
    if model.provider not in ELSEWHERE:
        require_code_allowed(model.model, model.revision, model.model_args)
    if model.provider not in PROVIDERS:
        if entry := plugins(GROUP).get(model.provider):
            plugin: Engine = object_at(OF_PLUGINS)(entry, model, settings)
            return plugin
        raise EngineLoadFailed(
            model.name,
            f"there is no provider {model.provider!r}; choose one of {', '.join(provider_names())}",
        )
    require_provider(model)
    factory: EngineFactory = object_at(PROVIDERS[model.provider])
    return factory(model, settings)


def require_provider(model: ModelRef) -> None:
    """Refuse a model whose provider's packages are not installed.

    Raises:
        ExtraMissing: If a package is missing; the message has the command that installs it.
    """
    if extra := EXTRAS.get(model.provider):
        require(extra, f"model {model.name!r} (provider: {model.provider})")


def engine_key(model: ModelRef) -> str:
    """Key of an engine: all parts of a model reference that affect what it loads.

    Models that differ only in their adapter share an engine.
    """
    parts = (model.provider, model.model, model.revision, model.chat, model.model_base_url, model.api_key)
    args = (dict(model.model_args), dict(model.chat_template_args), model.chat_template)
    setup = [dict(model.setup)] if model.setup else []
    reads = ["images"] if model.shows_images and model.provider == "transformers" else []
    return json.dumps([*parts, *args, *setup, *reads], sort_keys=True)


def adapters_by_engine(models: Sequence[ModelRef]) -> dict[str, frozenset[str]]:
    """Folders of the LoRA adapters that each engine serves, by `engine_key`."""
    found: dict[str, set[str]] = {}
    for each in models:
        if each.lora is not None:
            found.setdefault(engine_key(each), set()).add(each.lora)
    return {key: frozenset(adapters) for key, adapters in found.items()}


def seats_wanted(model: ModelRef) -> int:
    """Number of devices that the model's engine occupies; 0 if it can run beside all others.

    A plug-in's engine occupies as many as a built-in one, unless its class has `devices = 0`.
    """
    if model.provider in PROVIDERS or (entry := plugins(GROUP).get(model.provider)) is None:
        return devices_wanted(model)
    takes_none: bool = object_at(TAKES_NO_DEVICE)(entry)
    return 0 if takes_none else devices_wanted(model)


def devices_wanted(model: ModelRef) -> int:
    """Number of devices of this machine that the model's engine uses; 0 if it runs elsewhere.

    Raises:
        ValueError: If a parallelism argument is not a whole number of at least 1.
    """
    if model.provider in ELSEWHERE:
        return 0
    width = 1
    for name in WIDTH_ARGS:
        size = model.model_args.get(name, 1)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"model_args.{name} must be a whole number from 1 on, got {size!r}")
        width *= size
    return width
