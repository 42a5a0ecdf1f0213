"""Parts of a campaign's file that are filled in the same way for every harness."""

import re

from winnow.storage.json_types import JsonView
from winnow.storage.objectives import OBJECTIVES, traits_of


def with_settings(model: object, settings: JsonView) -> object:
    """A model of the file with a task's settings; the model's own take precedence."""
    if not isinstance(model, dict):
        return model
    own = model.get("generate_config") or {}
    return {**model, "generate_config": {**settings, **own} if isinstance(own, dict) else own}


def prompt_name(task: str) -> str:
    """The task's name in the form of a prompt name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("._-")[:100] or "task"


def compares_pairs(values: JsonView) -> bool:
    """Whether a campaign's objective compares pairs of outputs, which no task's judge does."""
    objective = values.get("objective")
    return objective in OBJECTIVES and traits_of(objective).compares_pairs
