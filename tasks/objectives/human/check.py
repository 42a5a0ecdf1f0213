"""Refusing campaigns in which people would be asked for what they cannot give."""

from collections.abc import Iterator, Mapping

from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import HUMAN


def check_people(spec: CampaignSpec) -> None:
    """Refuse a campaign in which people judge a part of an output, a stream, or more than one text each.

    Raises:
        SpecError: With the key, what is wrong and what to do.
    """
    for place, judge in _parts(spec):
        if judge.get("type") == HUMAN:
            raise SpecError("people judge whole campaigns, and no parts; make it the judge", path=place)
    if spec.judge.type != HUMAN:
        return
    if spec.objective == "route":
        raise SpecError(
            "a stream of prompts does not wait for people; choose another judge for route", path="judge.type"
        )
    if spec.lookahead:
        raise SpecError("people judge one round at a time; leave lookahead out", path="lookahead")
    if spec.samples is not None:
        raise SpecError("people judge one text for each example; leave samples out", path="samples")
    if spec.output_type != "generate":
        raise SpecError(
            f"people judge texts, and {spec.output_type} makes none; leave it out", path="output_type"
        )


def _parts(spec: CampaignSpec) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The judges that stand within others or beside the one that decides, with their places."""
    yield from _within("judge", spec.judge.params)
    for index, metric in enumerate(spec.metrics):
        place = f"metrics[{index}].judge"
        judge = {"type": metric.judge.type, **metric.judge.params}
        yield place, judge
        yield from _within(place, judge)


def _within(place: str, value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _inner(f"{place}[{index}]", each)
    elif isinstance(value, Mapping):
        for key in ("judges", "scorer"):
            if key in value:
                yield from _inner(f"{place}.{key}", value[key])


def _inner(place: str, value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(value, Mapping):
        yield place, value
    yield from _within(place, value)
