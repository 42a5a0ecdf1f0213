"""Who judges, as a spec describes it, read without pydantic."""

from collections.abc import Iterator, Mapping

from winnow.storage.json_types import JsonObject

HUMAN = "human"
"""The type of the judge that is no model and no code: people judge."""


def judge_entries(judge: object) -> Iterator[JsonObject]:
    """The mappings that describe a model, of a judge and of the parts that it combines.

    What is malformed is left to its reader.

    Args:
        judge: As in a spec, its type among its parameters or not.
    """
    if not isinstance(judge, Mapping):
        return
    models, parts = judge.get("models"), judge.get("judges")
    for model in (judge.get("model"), *(models if isinstance(models, list) else ())):
        if isinstance(model, dict):
            yield model
    for part in parts if isinstance(parts, list) else ():
        yield from judge_entries(part)


def judge_place(model: Mapping[str, object]) -> str:
    """Where a model of a judge stands, for what is kept of it by place."""
    return f"judge.{model.get('judge_id', model.get('name'))}"


def is_human(spec: Mapping[str, object]) -> bool:
    """Whether people judge a stored campaign, by its spec."""
    judge = spec.get("judge")
    return isinstance(judge, Mapping) and judge.get("type") == HUMAN
