"""The server keys of a spec's models, taken out of the spec and put back into it."""

from collections.abc import Iterator
from copy import deepcopy

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.server_keys import SERVER_KEYS
from winnow.tasks.spec.judge_tree import judging_models


def without_servers(spec: JsonView) -> tuple[JsonObject, JsonObject]:
    """A spec as JSON values without the server keys of its models, and those that were set, by place."""
    bare = deepcopy(dict(spec))
    servers: dict[str, JsonObject] = {}
    for place, model in _models(bare):
        taken = {key: model.pop(key, None) for key in SERVER_KEYS}
        if given := {key: value for key, value in taken.items() if value is not None}:
            servers[place] = given
    return bare, servers


def with_servers(spec: JsonView, servers: JsonView) -> JsonObject:
    """The spec that `without_servers` took apart, put together again."""
    whole = deepcopy(dict(spec))
    for place, model in _models(whole):
        model.update(servers.get(place, {}))
    return whole


def _models(spec: JsonView) -> Iterator[tuple[str, JsonObject]]:
    """The mappings that describe a model, each with its place; what is malformed is left to its reader."""
    for model in spec.get("models", []):
        yield f"models.{model['name']}", model
    yield from judging_models(spec)
    if autoevaluator := (spec.get("certify") or {}).get("autoevaluator"):
        yield "autoevaluator", autoevaluator["model"]
