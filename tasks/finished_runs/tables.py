"""Tables of scores in .csv, .jsonl or .parquet: a row for each output, or a column for each candidate."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from winnow.tasks.data.dataset_files import read_rows
from winnow.tasks.finished_runs.scored_output import (
    Choice,
    ScoredOutput,
    UnreadableRun,
    as_score,
    as_text,
    as_texts,
    chosen,
    field_of,
)

CANDIDATES = ("candidate", "model", "system")
EXAMPLES = ("example", "id", "example_id", "item", "question_id")
SCORES = ("score", "outcome", "correct", "accuracy")
TEXTS = {
    "output": ("output", "answer", "response"),
    "input": ("input", "question", "prompt"),
    "target": ("target", "expected"),
}
"""Names of columns, in the order in which they are looked for."""


class Tables:
    """A long table has a column that names the candidate; a wide one has a column of scores for each."""

    name = "table"

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """See `Reader`."""
        return True

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """See `Reader`."""
        rows = [row for _, row in read_rows(path)]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        candidate = choice.candidate or _first(CANDIDATES, columns)
        example = choice.example or _first(EXAMPLES, columns)
        for named, kind in ((choice.candidate, "candidate"), (choice.example, "example")):
            if named is not None and named not in columns:
                raise UnreadableRun(
                    f"{path} has no column {named!r} for --{kind}; it has {', '.join(columns)}"
                )
        yield from (_long if candidate else _wide)(rows, columns, candidate or "", example, choice, path)


def _long(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    candidate: str,
    example: str | None,
    choice: Choice,
    path: Path,
) -> Iterator[ScoredOutput]:
    asked = _first(TEXTS["input"], columns)
    if example is None and asked is None:
        raise UnreadableRun(f"{path} has no column that names the example; name it: --example COLUMN")
    score = choice.metric or _first(SCORES, columns)
    if score is None or score not in columns:
        raise UnreadableRun(
            f"{path} has no column of scores; name it: --metric COLUMN (it has {', '.join(columns)})"
        )
    for row in rows:
        yield ScoredOutput(
            candidate=as_text(row.get(candidate)),
            example=as_text(row.get(example or asked or "")),
            score=_number(row.get(score)),
            output=as_text(field_of(row, *TEXTS["output"])),
            input=as_text(field_of(row, *TEXTS["input"])),
            targets=as_texts(field_of(row, *TEXTS["target"])),
        )


def _wide(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    _: str,
    example: str | None,
    choice: Choice,
    path: Path,
) -> Iterator[ScoredOutput]:
    """A column of numbers is a candidate."""
    others = {example, *TEXTS["input"], *TEXTS["target"]}
    candidates = [
        each
        for each in columns
        if each not in others and any(_number(row.get(each)) is not None for row in rows)
    ]
    if len(candidates) < 2:
        chosen("candidate", [], choice.candidate, path=path)
    for place, row in enumerate(rows):
        for name in candidates:
            yield ScoredOutput(
                candidate=name,
                example=as_text(row.get(example)) if example else str(place),
                score=_number(row.get(name)),
                input=as_text(field_of(row, *TEXTS["input"])),
                targets=as_texts(field_of(row, *TEXTS["target"])),
            )


def _first(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((each for each in names if each in columns), None)


def _number(value: object) -> float | None:
    """A score; csv files hold them as text."""
    if isinstance(value, str):
        try:
            return as_score(float(value))
        except ValueError:
            return {"true": 1.0, "false": 0.0}.get(value.strip().lower())
    return as_score(value)
