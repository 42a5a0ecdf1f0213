"""Which engines there are. Their modules, and with them torch or vLLM, are imported only when one starts."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from winnow.algorithms.state.plugin_registry import plugins
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.plugin import PluginEngine
from winnow.tasks.engines.protocol import Engine, ModelRef
from winnow.tasks.plugins.extras import Extra, require


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How engines are run; but for `is_fresh` none of it changes what they answer."""

    log_folder: Path
    """Where engines in processes of their own write what they would print."""
    load_timeout: float = 600.0
    """Seconds a model may take to load."""
    batch_timeout: float | None = 600.0
    """Seconds a batch may take; of several in hand, in which none may be answered. None waits for ever."""
    max_connections: int = 64
    """Requests that a server is sent at once, at the most."""
    request_timeout: float = 120.0
    """Seconds a server may take to answer one request."""
    max_retries: int = 5
    """How often one request to a server is sent again."""
    devices: tuple[int, ...] = ()
    """Where the engine runs, as CUDA numbers them; empty leaves it to the engine."""
    sleeps: bool = False
    """Whether it is to be able to sleep, where the device can."""
    is_fresh: bool = False
    """Whether it is to forget between calls what it computed, so that no call depends on those before."""
    adapters: tuple[str, ...] = ()
    """Folders of the LoRA adapters that it will be asked for."""


EngineFactory = Callable[[ModelRef, EngineSettings], Engine]

PROVIDERS: dict[str, str] = {
    "litellm": "winnow.tasks.engines.litellm.engine:start",
    "openai": "winnow.tasks.engines.openai.engine:start",
    "transformers": "winnow.tasks.engines.transformers.engine:start",
    "vllm": "winnow.tasks.engines.vllm.engine:start",
}
"""Provider of a model reference -> "module:function" of an `EngineFactory`."""

GROUP = "winnow.engines"
"""Entry points by which packages add providers, each an `EngineFactory`; none replaces one of ours."""

EXTRAS: dict[str, Extra] = {"litellm": "litellm", "transformers": "local", "vllm": "vllm"}
"""Provider -> the extra whose packages it runs on."""

REMOTE: frozenset[str] = frozenset({"litellm", "openai"})
"""Providers whose models run elsewhere: they take no memory here, and are asked beside all others."""

ADAPTING = frozenset({"vllm"})
"""Providers that can put a LoRA adapter on a model."""


def provider_names() -> list[str]:
    """Every provider there is, ours and those of plug-ins, in alphabetical order; none is imported."""
    return sorted({*PROVIDERS, *plugins(GROUP)})


def start_engine(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start the engine of the model's provider, which may go on loading after this returns.

    Raises:
        EngineLoadFailed: If there is no such provider, or it refuses the model.
        ExtraMissing: If what it runs on is not installed.
        PluginFailed: If it is a plug-in that raises anything else.
    """
    if model.provider not in PROVIDERS:
        if entry := plugins(GROUP).get(model.provider):
            return PluginEngine(entry, model, settings)
        raise EngineLoadFailed(
            model.name,
            f"there is no provider {model.provider!r}; choose one of {', '.join(provider_names())}",
        )
    require_provider(model)
    module_name, _, function = PROVIDERS[model.provider].partition(":")
    factory: EngineFactory = getattr(import_module(module_name), function)
    return factory(model, settings)


def require_provider(model: ModelRef) -> None:
    """Refuse a model whose provider runs on packages that are not installed.

    Raises:
        ExtraMissing: With the command that installs them.
    """
    if extra := EXTRAS.get(model.provider):
        require(extra, f"model {model.name!r} (provider: {model.provider})")
