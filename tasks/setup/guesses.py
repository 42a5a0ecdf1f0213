"""Guess the columns, judge and prompt for a data file; each guess is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from winnow.storage.json_types import JsonObject, Row
from winnow.tasks.data.dataset_files import read_files
from winnow.tasks.data.labels import labels_of
from winnow.tasks.errors import SpecError, unknown_name

MOST_READ = 2_000
"""Maximum number of rows that guesses are based on."""

INPUTS = (
    "input", "question", "text", "prompt", "query", "sentence", "ticket", "message", "content", "document",
    "body", "instruction", "source", "title",
)  # fmt: skip
TARGETS = (
    "target", "label", "answer", "expected", "expected_output", "output", "reference", "gold", "ideal",
    "category", "class", "intent", "sentiment", "translation", "summary",
)  # fmt: skip
"""Typical column names of inputs and targets, the most likely first."""
IDS = ("id", "key", "uid", "uuid")

FEWEST_TO_TELL = 12
"""Minimum number of rows to detect that input and target look swapped."""

LONG_TARGET = 80
"""Minimum mean length, in characters, of targets with many correct wordings instead of one exact answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns of a data file, by role."""

    input: str
    target: str
    id: str | None

    def fields(self) -> JsonObject:
        """The columns as `dataset.fields`."""
        found = {} if self.id is None else {"id": self.id}
        return {**found, "input": self.input, "target": self.target}


def first_rows(path: str) -> list[Row]:
    """Read the first rows of a data file.

    Raises:
        DatasetError: The file cannot be read.
        SpecError: The file has no rows.
    """
    rows = [row for _, row in islice(read_files([path]), MOST_READ)]
    if not rows:
        raise SpecError(f"{path} has no rows; name a file that has examples")
    return rows


def columns_of(
    rows: Sequence[Row], path: str, given: str | None, target: str | None, others: Sequence[str] = ()
) -> Columns:
    """Columns of a data file; those not given are guessed from names and contents.

    Args:
        rows: First rows of the file.
        path: The file, for error messages.
        given: Column of the input; None to guess it.
        target: Column of the target; None to guess it.
        others: Columns that are neither, such as those of images.

    Raises:
        SpecError: A given column is missing, or no column can be the input or the target.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    for option, name in (("--input", given), ("--target", target)):
        if name is not None and name.partition(".")[0] not in names:
            raise SpecError(f"{option}: {unknown_name('column', name, names)}")
    own_id = next((each for each in names if each.casefold() in IDS and _is_unique(rows, each)), None)
    free = [each for each in names if each not in (given, target, own_id, *others)]
    target = target or _named(free, TARGETS)
    free = [each for each in free if each != target]
    given = given or _named(free, INPUTS) or max(free, key=lambda name: _length(rows, name), default=None)
    if given is None:
        raise SpecError(f"{path} has no column that can be the input; name it by --input COLUMN")
    left = [each for each in free if each != given]
    if target is None and len(left) == 1:
        target = left[0]
    if target is None:
        known = f"its columns: {', '.join(names)}"
        raise SpecError(f"{path} has no column that looks like the target ({known}); name one by --target")
    return Columns(input=given, target=target, id=own_id)


def _named(names: Sequence[str], likely: Sequence[str]) -> str | None:
    by_name = {each.casefold(): each for each in reversed(names)}
    return next((by_name[each] for each in likely if each in by_name), None)


def _is_unique(rows: Sequence[Row], name: str) -> bool:
    values = [row.get(name) for row in rows]
    return all(isinstance(each, str | int) and each != "" for each in values) and len(set(values)) == len(
        rows
    )


def _length(rows: Sequence[Row], name: str) -> int:
    return sum(len(each) for row in rows if isinstance(each := row.get(name), str))


def look_swapped(rows: Sequence[Row], columns: Columns) -> bool:
    """Whether input and target look swapped.

    They do if inputs are a few labels, and targets are longer and all different.
    """
    inputs, targets = targets_in(rows, columns.input), targets_in(rows, columns.target)
    if len(rows) < FEWEST_TO_TELL or not labels_of(inputs) or labels_of(targets):
        return False
    texts = [each for some in targets for each in some]
    return len(set(texts)) == len(texts) and _length(rows, columns.target) > _length(rows, columns.input)


def targets_in(rows: Sequence[Row], column: str) -> list[list[str]]:
    """Targets of rows, as texts; columns inside an object are not supported."""
    found = []
    for row in rows:
        value = row.get(column)
        several = value if isinstance(value, list) else [value]
        found.append([str(each) for each in several if each not in (None, "")])
    return found


def judge_for(targets: Sequence[Sequence[str]]) -> tuple[str, str]:
    """The likely judge, with the reason in a few words."""
    all_ = [each for some in targets for each in some]
    if not all_:
        return "normalised", "no target was read"
    if all(map(_is_number, all_)):
        return "numeric", "targets are numbers"
    if labels := labels_of(targets):
        return "normalised", f"targets are {len(labels)} labels"
    if sum(map(len, all_)) > LONG_TARGET * len(all_):
        return "f1", "targets are long texts, whose words are compared"
    return "normalised", "targets are short texts; case and punctuation do not matter"


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def prompt_for(column: str, targets: Sequence[Sequence[str]]) -> str:
    """Prompt template with the input; if targets are a few labels, also with these."""
    shown = f"{{{{ {column} }}}}"
    if not (labels := labels_of(targets)):
        return shown
    return f"{shown}\n\nAnswer with one of these alone: {', '.join(sorted(labels))}."
