"""Exports of Langfuse as JSON: traces or items of dataset runs, with scores."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from winnow.tasks.data.dataset_files import read_rows
from winnow.tasks.finished_runs.scored_output import (
    Choice,
    ScoredOutput,
    UnreadableRun,
    as_object,
    as_score,
    as_text,
    as_texts,
    chosen,
    field_of,
    json_object,
)

CANDIDATES = ("datasetRunName", "runName", "release", "version", "name")
"""Fields that can identify candidates, in order of preference."""

EXAMPLES = ("datasetItemId", "metadata.datasetItemId", "metadata.dataset_item_id")


class LangfuseExport:
    """Reader of Langfuse's exports.

    One object is one trace or item. A trace without a dataset item is identified by its input.
    """

    name = "langfuse"

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """See `Reader`."""
        first = row.get("data")
        item = first[0] if isinstance(first, list) and first else row
        return isinstance(item, Mapping) and "scores" in item and {"input", "output"} <= item.keys()

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """See `Reader`."""
        rows = list(_rows(path))
        candidate = choice.candidate or _candidate_field(rows, path)
        names = list(dict.fromkeys(name for row in rows for name in _scores(row)))
        metric = chosen("metric", names, choice.metric, path=path)
        for row in rows:
            named = field_of(row, candidate)
            if named is None:
                raise UnreadableRun(
                    f"{path}: an entry has no {candidate}, which names its candidate; choose another field "
                    "by --candidate"
                )
            inputs = as_text(row.get("input"))
            key = field_of(row, *([choice.example] if choice.example else EXAMPLES))
            yield ScoredOutput(
                candidate=as_text(named),
                example=inputs if key is None else as_text(key),
                score=_scores(row).get(metric),
                output=as_text(row.get("output")),
                input=inputs,
                targets=as_texts(field_of(row, "expectedOutput", "metadata.expectedOutput")),
            )


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    if path.suffix in (".jsonl", ".ndjson"):
        yield from (row for _, row in read_rows(path))
        return
    found = json_object(path).get("data")
    yield from (as_object(each, path) for each in (found if isinstance(found, list) else ()))


def _candidate_field(rows: list[Mapping[str, object]], path: Path) -> str:
    """The first field with more than one value."""
    for name in CANDIDATES:
        if len({json.dumps(field_of(row, name)) for row in rows}) > 1:
            return name
    looked = ", ".join(CANDIDATES)
    raise UnreadableRun(
        f"{path}: none of the fields {looked} differs between rows, so candidates cannot be "
        "distinguished; name the field: --candidate FIELD"
    )


def _scores(row: Mapping[str, object]) -> dict[str, float]:
    """Scores by name, from an object or a list of named scores.

    If a list has several scores of one name, the last one counts.
    """
    given = row.get("scores")
    pairs: list[tuple[object, object]] = []
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list):
        pairs = [(each.get("name"), each.get("value")) for each in given if isinstance(each, Mapping)]
    found = {}
    for name, value in pairs:
        number = as_score(value[-1] if isinstance(value, list) and value else value)
        if number is not None:
            found[str(name)] = number
    return found
