"""JSON schema of a campaign's file, with which editors complete and check keys."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ModelSchema

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.setup.task_key import BECOMES
from winnow.tasks.setup.yaml_file import FOR_MERGING
from winnow.tasks.spec.campaign import CampaignFile
from winnow.tasks.spec.sections.models import OF_MODELS, agent_class

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DEFAULTED = ("objective", "selector", "stopping")
"""Keys that can be omitted; `selector` and `stopping` only for an objective with a default selector."""

_SEE_CODE = re.compile(r"; see `[\w.]+`")
"""Matches references that are only useful to readers of the code."""


class _Explained(GenerateJsonSchema):
    """Adds the docstring of each field as the field's description."""

    def model_schema(self, schema: ModelSchema) -> JsonObject:
        found = super().model_schema(schema)
        model = schema["cls"]
        for field, text in _explanations(model):
            if field not in model.model_fields:  # a constant of the class
                continue
            found["properties"][model.model_fields[field].alias or field]["description"] = text
        return found


def campaign_schema(
    *, selectors: Sequence[str], judges: Sequence[str], providers: Sequence[str]
) -> JsonObject:
    """Create the schema of a campaign's file, as JSON values.

    It has every key with its allowed values. It does not check combinations of keys, or parameters of judges
    and selectors; `winnow validate` checks those.

    Args:
        selectors: Suggestions for `selector.name`; other names, of plug-ins, are also valid.
        judges: Suggestions for `judge.type`.
        providers: Suggestions for a model's `provider`.
    """
    schema = CampaignFile.model_json_schema(schema_generator=_Explained)
    stood_for = [key for key in schema["required"] if key in BECOMES]
    schema["required"] = [key for key in schema["required"] if key not in (*BECOMES, *DEFAULTED)]
    schema["patternProperties"] = {f"^{FOR_MERGING}": {}}
    agents = {"type": "object", "properties": {"provider": {"enum": sorted(AGENTS)}}}
    without_prompts = [key for key in stood_for if key != "prompts"]
    schema["anyOf"] = [
        {"required": ["task"]},
        {"required": stood_for},
        {"required": without_prompts, "properties": {"models": {"items": agents}}},
    ]
    parts = schema["$defs"]
    for provider in AGENTS:
        properties = parts[agent_class(provider).__name__]["properties"]
        for key in (*OF_MODELS, "model", "entry"):
            del properties[key]
    parts["SelectorSpec"]["properties"]["name"] |= _offered(selectors)
    parts["JudgeSpec"]["properties"]["type"] |= _offered(judges)
    parts["ModelSpec"]["properties"]["provider"] |= _offered(providers)
    return {"$schema": DIALECT, **schema, "title": "A Winnow campaign"}


def _offered(names: Sequence[str]) -> JsonObject:
    return {"anyOf": [{"enum": list(names)}, {"type": "string"}]}


def _made() -> list[type[BaseModel]]:
    """Classes that are created at run time, so that they have no source code."""
    return [agent_class(provider) for provider in AGENTS]


def _explanations(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield each field of a model and its bases, with the field's docstring."""
    for part in reversed(model.__mro__):
        if not issubclass(part, BaseModel) or part is BaseModel or part in _made():
            continue
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in zip(definition.body, definition.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as words)),
                ):
                    yield name, _SEE_CODE.sub("", " ".join(words.split()))
