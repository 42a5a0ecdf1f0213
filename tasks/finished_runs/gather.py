"""Join the outputs of several files to one finished run, and make a campaign.

Tables are read here too.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES
from winnow.storage.plain_files import open_plain
from winnow.storage.text import storable
from winnow.tasks.data.dataset_files import read_rows
from winnow.tasks.engines.known_providers import RECORDED
from winnow.tasks.finished_runs.inspect_logs import InspectLogs
from winnow.tasks.finished_runs.langfuse import LangfuseExport
from winnow.tasks.finished_runs.lm_eval import LmEvalSamples
from winnow.tasks.finished_runs.promptfoo import PromptfooResults
from winnow.tasks.finished_runs.scored_output import (
    Choice,
    Reader,
    ScoredOutput,
    UnreadableRun,
    as_score,
    as_text,
    as_texts,
    chosen,
    field_of,
)
from winnow.tasks.spec.shorthands import DELTA

CANDIDATES = ("candidate", "model", "system")
EXAMPLES = ("example", "id", "example_id", "item", "question_id")
SCORE_COLUMNS = ("score", "outcome", "correct", "accuracy")
TEXTS = {
    "output": ("output", "answer", "response"),
    "input": ("input", "question", "prompt"),
    "target": ("target", "expected"),
}
"""Names of columns, in order of preference."""


class Tables:
    """Reader of tables, long or wide.

    A long table has a column that names the candidate. A wide table has a column of scores for each
    candidate.
    """

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
                    f"{path} has no column {named!r} for --{kind}; choose one of {', '.join(columns)}"
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
        raise UnreadableRun(f"{path} has no column of examples that Winnow knows; set --example COLUMN")
    score = choice.metric or _first(SCORE_COLUMNS, columns)
    if score is None or score not in columns:
        raise UnreadableRun(f"{path} has no column of scores; set --metric to one of {', '.join(columns)}")
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
    """Yield the outputs of a wide table; each column of numbers is a candidate."""
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
    """A score as a number; None if it is not a score.

    CSV files contain scores as text.
    """
    if isinstance(value, str):
        try:
            return as_score(float(value))
        except ValueError:
            return {"true": 1.0, "false": 0.0}.get(value.strip().lower())
    return as_score(value)


READERS: Sequence[Reader] = (LmEvalSamples(), InspectLogs(), PromptfooResults(), LangfuseExport(), Tables())
"""Readers of all formats; a file that no other reader recognises is a table."""

HEAD = 1 << 16
"""Number of bytes at a file's start that are read to recognise its format."""

OUTPUTS, SCORES = "outputs", "scores"
"""Fields of an example that hold each candidate's output and score, by its model's name."""

NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class Cell:
    """Result of a candidate on an example.

    With several repetitions, the score is their mean and the output is the first one.
    """

    source: Path
    output: str
    scores: list[float] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        """Mean of the scores; None if there are no scores."""
        return sum(self.scores) / len(self.scores) if self.scores else None


@dataclass(kw_only=True)
class FinishedRun:
    """Outputs and scores of candidates on examples."""

    cells: dict[tuple[str, str], Cell]
    """Results by candidate and example."""
    candidates: list[str]
    examples: dict[str, JsonObject]
    """Input, target and task of each example, by the example's name."""
    known: set[str] = field(default_factory=set)
    """The candidates as a set, for fast tests of membership."""
    low: float = 0.0
    high: float = 1.0
    """Upper end of the source's range of scores.

    `rows` scales scores from this range to 0 to 1.
    """

    @property
    def renamed(self) -> Mapping[str, str]:
        """New names of the candidates whose names are not valid for models, by old name."""
        return {each: name for each, name in model_names(self.candidates).items() if name != each}

    def rows(self) -> Iterable[JsonObject]:
        """Yield a row for each example, with the outputs and scores of all candidates."""
        names = model_names(self.candidates)
        for key, example in self.examples.items():
            outputs, scores = {}, {}
            for candidate in self.candidates:
                if (cell := self.cells.get((candidate, key))) is None:
                    continue
                outputs[names[candidate]] = cell.output
                if cell.score is not None:
                    scores[names[candidate]] = (cell.score - self.low) / (self.high - self.low)
            yield {"id": key, **example, OUTPUTS: outputs, SCORES: scores}

    def spec(self, name: str, data: str, storage: str | None) -> JsonObject:
        """The campaign that scores all candidates on all examples, with data from `rows`."""
        n = len(self.candidates) * len(self.examples)
        return {
            "name": name,
            "objective": OBJECTIVES[0],
            **({} if storage is None else {"storage": storage}),
            "models": [
                {"name": each, "provider": RECORDED, "output": f"{OUTPUTS}.{each}"}
                for each in model_names(self.candidates).values()
            ],
            "dataset": {"path": data, "fields": {"id": "id", "input": "input", "target": "target"}},
            "judge": {"type": "recorded", "scores": SCORES},
            **({"tags": ["task"]} if len({each.get("task") for each in self.examples.values()}) > 1 else {}),
            "selector": {"name": "filled-subset"},
            "stopping": {"budget": max(n, 1), "delta": DELTA},
            "batch_size": min(max(n, 1), 512),
        }


def read_run(
    files: Sequence[str],
    choice: Choice,
    *,
    format_: str | None = None,
    range_: tuple[float, float] = (0.0, 1.0),
) -> FinishedRun:
    """Read the files of a finished run.

    Args:
        files: Files in one or several formats; NAME=FILE sets the candidate's name for a file with a single
            candidate.
        choice: The metric, filter and columns to read.
        format_: Name of the format; None to recognise the format of each file.
        range_: Lowest and highest possible score.

    Raises:
        UnreadableRun: A file cannot be read, the files have fewer than two candidates, or a score is outside
            the range.
    """
    run = FinishedRun(cells={}, candidates=[], examples={}, low=range_[0], high=range_[1])
    for given in files:
        name, path = _named(given)
        before = len(run.cells)
        for each in _reader(path, format_).read(path, choice):
            _add(run, each, path, name or each.candidate)
        if len(run.cells) == before:
            raise UnreadableRun(f"{path} adds no output; remove it if it is empty or given twice")
    if len(run.candidates) < 2:
        raise UnreadableRun(
            f"{run.candidates[0]} is the only candidate, so there is nothing to compare it with; name the "
            "files of other candidates too"
        )
    return run


def _named(given: str) -> tuple[str, Path]:
    """The name before a file, empty if there is none, and the file."""
    name, equals, path = given.partition("=")
    return (name, Path(path)) if equals and not Path(given).exists() else ("", Path(given))


def _add(run: FinishedRun, found: ScoredOutput, path: Path, candidate: str) -> None:
    candidate, key = storable(candidate), storable(found.example)
    if not candidate or not key:
        raise UnreadableRun(
            f"{path}: an output has no name of its candidate or example; choose the fields by --candidate "
            "and --example"
        )
    if found.score is not None and not run.low <= found.score <= run.high:
        raise UnreadableRun(
            f"{path}: the score {found.score:g} of {candidate} on {found.example} is outside "
            f"{run.low:g} to {run.high:g}; give the range of possible scores: --range LOW,HIGH"
        )
    if candidate not in run.known:
        run.known.add(candidate)
        run.candidates.append(candidate)
    asked = storable(found.input)
    example = run.examples.setdefault(
        key,
        {
            "input": asked or key,
            "target": list(map(storable, found.targets)) or None,
            **({"task": storable(found.group)} if found.group else {}),
        },
    )
    if asked and example["input"] != asked:
        raise UnreadableRun(
            f"{path}: example {key} of {candidate} has another input than that of "
            f"{run.candidates[0]}; give files with the same examples"
        )
    cell = run.cells.setdefault((candidate, key), Cell(path, storable(found.output)))
    if cell.source != path:
        raise UnreadableRun(
            f"{path} and {cell.source} both have {candidate} on {key}; remove one, or give another candidate "
            f"name: NAME={path}"
        )
    if found.score is not None:
        cell.scores.append(found.score)


def model_names(candidates: Sequence[str]) -> Mapping[str, str]:
    """A valid model name for each candidate, in order.

    Such a name has no spaces, dots or slashes. If several names become equal, the candidate with exactly this
    name keeps it, and the others get a number.
    """
    found: dict[str, str] = {}
    taken = {each for each in candidates if _plain(each) == each}
    numbers: Counter[str] = Counter()
    for each in candidates:
        name = plain = _plain(each)
        while name in taken and name != each:
            numbers[plain] += 1
            name = f"{plain}-{numbers[plain] + 1}"
        taken.add(name)
        found[each] = name
    return found


def _plain(candidate: str) -> str:
    return NOT_IN_A_NAME.sub("-", candidate).replace(".", "-").strip("-_") or "candidate"


def _reader(path: Path, format_: str | None) -> Reader:
    """The reader for a file's format.

    Raises:
        UnreadableRun: The file cannot be opened, or the format is unknown.
    """
    if format_ is not None:
        for reader in READERS:
            if reader.name == format_:
                return reader
        raise UnreadableRun(
            f"there is no format {format_!r}; choose one of {', '.join(each.name for each in READERS)}"
        )
    row = _first_object(path)
    return next(each for each in READERS if each.recognises(path, row))


def _first_object(path: Path) -> Mapping[str, object]:
    """The first JSON object of a file, parsed from its first `HEAD` bytes.

    If these bytes cannot be parsed, because the object is larger, the result has placeholder keys of the
    format that they resemble. Empty if the file is compressed, is not JSON, or resembles no format.

    Raises:
        UnreadableRun: The file cannot be read.
    """
    from winnow.tasks.finished_runs.scored_output import as_object

    try:
        with open_plain(path) as file:
            head = file.read(HEAD)
    except OSError as error:
        raise UnreadableRun(f"{path} cannot be read: {error.strerror or error}") from error
    if path.suffix == ".gz" or head.lstrip()[:1] not in (b"{", b"["):
        return {}
    for text in (head.split(b"\n", 1)[0], head):
        try:
            return as_object(json.loads(text), path)
        except (ValueError, RecursionError, UnreadableRun):
            continue
    return _keys(head)


def _keys(head: bytes) -> Mapping[str, object]:
    """Placeholder keys of the format that the first bytes of a large object resemble.

    Empty if they resemble no format.
    """
    text = head.decode("utf-8", "replace")
    if '"doc_id"' in text and '"doc"' in text:
        return {"doc_id": 0, "doc": {}, "filtered_resps": []}
    if '"evalId"' in text or '"promptIdx"' in text:
        return {"evalId": "", "results": []}
    if '"eval"' in text and '"version"' in text:
        return {"eval": {}, "version": 2}
    if '"scores"' in text and '"output"' in text:
        return {"data": [{"scores": [], "input": "", "output": ""}]}
    return {}
