"""What of a model reference decides which engine serves it, and on how many devices."""

import json
from collections.abc import Sequence

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import REMOTE

WIDTH_ARGS = ("tensor_parallel_size", "pipeline_parallel_size")
"""Arguments of vLLM whose product is the number of devices of an engine."""


def engine_key(model: ModelRef) -> str:
    """All of a reference that decides what an engine loads, in one spelling; adapters share an engine."""
    parts = (model.provider, model.model, model.revision, model.chat, model.model_base_url, model.api_key)
    args = (dict(model.model_args), dict(model.chat_template_args), model.chat_template)
    return json.dumps([*parts, *args], sort_keys=True)


def adapters_for(model: ModelRef, models: Sequence[ModelRef]) -> tuple[str, ...]:
    """The adapters that the engine of a model has to serve: those of all models that share it."""
    key = engine_key(model)
    sharing = (each.lora for each in (model, *models) if engine_key(each) == key)
    return tuple(sorted({adapter for adapter in sharing if adapter is not None}))


def devices_wanted(model: ModelRef) -> int:
    """Devices of this machine that the model's engine takes; 0 if it runs elsewhere.

    Raises:
        ValueError: If one of the arguments that say so is not a whole number from 1 on.
    """
    if model.provider in REMOTE:
        return 0
    width = 1
    for name in WIDTH_ARGS:
        size = model.model_args.get(name, 1)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"model_args.{name} must be a whole number from 1 on, got {size!r}")
        width *= size
    return width
