"""Checking what texts are to be held to: what is no pattern or no schema is refused before anything runs."""

import re
from collections.abc import Iterator

from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.judges.isolated.json_schema import check_schema
from winnow.tasks.plugins.extras import missing_for
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.sections.generate_config import StructuredOutput


def check_structured_outputs(spec: CampaignSpec) -> None:
    """Refuse a regex that does not compile, and a schema that is none where jsonschema is installed.

    What an engine makes of them it says itself: it may know less, and of grammars only the engine knows.

    Raises:
        SpecError: With the place.
    """
    for place, given in _places(spec):
        if given.regex is not None:
            _check_regex(given.regex, f"{place}.regex")
        if given.json_schema is not None and missing_for("judges", place) is None:
            try:
                check_schema(given.json_schema, f"{place}.json_schema")
            except JudgeError as error:
                raise SpecError(error.message, path=error.path) from error


def _check_regex(pattern: str, place: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise SpecError(f"{pattern!r} is no regular expression ({error}); correct it", path=place) from error


def _places(spec: CampaignSpec) -> Iterator[tuple[str, StructuredOutput]]:
    configs = [(f"models[{i}].generate_config", each.generate_config) for i, each in enumerate(spec.models)]
    configs += [(f"generate_configs[{i}]", each) for i, each in enumerate(spec.generate_configs)]
    for place, config in configs:
        if config.structured_output is not None:
            yield f"{place}.structured_output", config.structured_output
