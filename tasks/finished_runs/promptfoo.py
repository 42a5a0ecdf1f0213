"""Results of promptfoo: `promptfoo eval -o results.json`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from winnow.tasks.finished_runs.scored_output import (
    Choice,
    ScoredOutput,
    UnreadableRun,
    as_score,
    as_text,
    as_texts,
    field_of,
    json_object,
)

METRICS = ("success", "score")
"""Names of the metrics.

"success" is whether all assertions passed, which promptfoo's table counts; "score" is their weighted
mean.
"""

ERROR = 2
"""`failureReason` of a row without a score because its provider failed."""


class PromptfooResults:
    """Reader of promptfoo's results.

    One file can have several providers and prompts; `score` is a number from 0 to 1.
    """

    name = "promptfoo"

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """See `Reader`."""
        return isinstance(_rows(row), list) and ("evalId" in row or "results" in row)

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """See `Reader`."""
        metric = choice.metric or METRICS[0]
        if metric not in METRICS:
            raise UnreadableRun(
                f"results of promptfoo have no metric {metric!r}; choose one of {', '.join(METRICS)}"
            )
        found = _rows(json_object(path))
        rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
        prompts = {_prompt(row) for row in rows}
        for row in rows:
            provider = _provider(row)
            failed = row.get("failureReason") == ERROR or (row.get("error") and "response" not in row)
            yield ScoredOutput(
                candidate=f"{provider}/{_prompt(row)}" if len(prompts) > 1 else provider,
                example=_example(row),
                score=None if failed else as_score(row.get(metric)),
                output=as_text(field_of(row, "response.output")),
                input=_input(row),
                targets=as_texts(_target(row)),
            )


def _rows(content: Mapping[str, object]) -> object:
    """The list of rows, which newer versions store one level deeper."""
    found = content.get("results")
    return found.get("results") if isinstance(found, Mapping) else found


def _provider(row: Mapping[str, object]) -> str:
    found = row.get("provider")
    if isinstance(found, Mapping):
        return str(found.get("label") or found.get("id") or "provider")
    return str(found or "provider")


def _prompt(row: Mapping[str, object]) -> str:
    return str(field_of(row, "prompt.label", "prompt.raw", "promptIdx") or "prompt")


def _example(row: Mapping[str, object]) -> str:
    number = row.get("testIdx")
    return str(number) if isinstance(number, int) else json.dumps(row.get("vars"), sort_keys=True)


def _input(row: Mapping[str, object]) -> str:
    variables = row.get("vars")
    if isinstance(variables, Mapping) and len(variables) == 1:
        return as_text(next(iter(variables.values())))
    return as_text(variables) if variables else as_text(field_of(row, "prompt.raw"))


def _target(row: Mapping[str, object]) -> object:
    """The value of the first assertion with a value."""
    asserts = field_of(row, "testCase.assert")
    for each in asserts if isinstance(asserts, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("value"), str | int | float):
            return each["value"]
    return None
