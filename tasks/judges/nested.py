"""The judges and models that stand within a judge, as a campaign's file describes them.

In Winnow's judges, certain parameters hold judges or models and all others hold data. A JSON schema, for one,
may contain mappings that look like either. What the parameters of a plug-in hold is not known.
"""

from collections.abc import Iterator, Mapping

from winnow.tasks.judges import registry
from winnow.tasks.spec.campaign import CampaignSpec, JudgeSpec

_JUDGES = ("judges", "scorer")
_MODELS = ("model", "models")

Placed = tuple[str, Mapping[str, object]]
"""A mapping with its place in the file, such as `judge.judges[1]`."""


def judges_of(spec: CampaignSpec) -> Iterator[Placed]:
    """The judge of a campaign and those of its metrics, and all judges within them."""
    yield from judges_in("judge", spec.judge)
    for index, metric in enumerate(spec.metrics):
        yield from judges_in(f"metrics[{index}].judge", metric.judge)


def judges_in(place: str, judge: JudgeSpec) -> Iterator[Placed]:
    """A judge and all judges within it."""
    yield from _with_inner(place, {"type": judge.type, **judge.params})


def models_of(place: str, judge: Mapping[str, object]) -> Iterator[Placed]:
    """The descriptions of a Winnow judge's own models, without those of judges within it."""
    yield from _held(place, judge, _MODELS)


def is_foreign(judge: Mapping[str, object]) -> bool:
    """Whether a judge is a plug-in, so that any mapping in its parameters may describe a judge or a model."""
    name = judge.get("type")
    return name not in registry.BUILT_IN and name not in registry.PAIRS


def mappings_below(place: str, value: object) -> Iterator[Placed]:
    """All mappings within a value, at any depth."""
    entries: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        entries = [(f"{place}.{key}", each) for key, each in value.items()]
    elif isinstance(value, list):
        entries = [(f"{place}[{index}]", each) for index, each in enumerate(value)]
    for inner, each in entries:
        if isinstance(each, Mapping):
            yield inner, each
        yield from mappings_below(inner, each)


def _with_inner(place: str, judge: Mapping[str, object]) -> Iterator[Placed]:
    yield place, judge
    if not is_foreign(judge):
        for inner, each in _held(place, judge, _JUDGES):
            yield from _with_inner(inner, each)


def _held(place: str, judge: Mapping[str, object], keys: tuple[str, ...]) -> Iterator[Placed]:
    """The mappings that these parameters hold, each of them one mapping or a list."""
    for key in keys:
        value = judge.get(key)
        if isinstance(value, Mapping):
            yield f"{place}.{key}", value
        for index, each in enumerate(value if isinstance(value, list) else ()):
            if isinstance(each, Mapping):
                yield f"{place}.{key}[{index}]", each
