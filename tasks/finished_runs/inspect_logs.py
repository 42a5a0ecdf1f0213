"""Logs of Inspect: `.eval` archives and `.json` logs."""

import json
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from winnow.storage.plain_files import open_plain, require_plain
from winnow.tasks.finished_runs.scored_output import (
    MOST_BYTES,
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

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Numbers for scores that are text, as in Inspect's `value_to_float`."""

MEAN = (None, "mean")
"""Reducers of epochs that compute the mean of the epochs' scores."""

ZSTANDARD = 93
LOCAL_HEADER = "<4s5H3I2H"
"""Header before a member's name in a ZIP archive; it ends with the lengths of name and extra field."""

DAMAGED = (
    OSError, ValueError, RuntimeError, EOFError, zlib.error, lzma.LZMAError, struct.error, zipfile.BadZipFile
)  # fmt: skip
"""Exceptions for an archive that is damaged, encrypted, or in another version of the format."""

HEADER = "header.json"
SAMPLES = "samples/"


class InspectLogs:
    """Reader of Inspect's logs.

    One log has the outputs of one model on one task. A sample's score is the mean over epochs.
    """

    name = "inspect"

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """See `Reader`."""
        return path.suffix == ".eval" or (isinstance(row.get("eval"), Mapping) and "version" in row)

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """See `Reader`."""
        with _Log(path) as log:
            header = log.header()
            _require_means(header, path)
            model = as_text(field_of(header, "eval.model") or path.stem)
            task = as_text(field_of(header, "eval.task"))
            for sample in log.samples():
                yield _scored(sample, choice, path, model, task)


class _Log:
    """A log; the samples of an archive are read one by one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive: zipfile.ZipFile | None = None
        self._content: Mapping[str, object] = {}

    def __enter__(self) -> "_Log":
        if self._path.suffix != ".eval":
            self._content = json_object(self._path)
            return self
        try:
            require_plain(self._path)
            self._archive = zipfile.ZipFile(self._path)
        except DAMAGED as error:
            raise UnreadableRun(
                f"{self._path} is not a log of Inspect: {error}; remove it or name the log"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.close()

    def header(self) -> Mapping[str, object]:
        if self._archive is None:
            return self._content
        return self._member(HEADER)

    def samples(self) -> Iterator[Mapping[str, object]]:
        if self._archive is None:
            found = self._content.get("samples")
            yield from (
                (each for each in found or () if isinstance(each, Mapping)) if isinstance(found, list) else ()
            )
            return
        for name in sorted(self._archive.namelist()):
            if name.startswith(SAMPLES) and name.endswith(".json"):
                yield self._member(name)

    def _member(self, name: str) -> Mapping[str, object]:
        assert self._archive is not None
        try:
            return as_object(json.loads(_content(self._archive, self._archive.getinfo(name))), self._path)
        except KeyError:
            raise UnreadableRun(
                f"{self._path} has no {name}, so it is not a finished log of Inspect; name a finished one"
            ) from None
        except DAMAGED as error:
            raise UnreadableRun(f"{self._path}: {name} cannot be read: {error}") from None


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The contents of a member of an archive.

    Inspect compresses by Zstandard, which Python 3.11 to 3.13 cannot read.

    Raises:
        ValueError: The member is larger than `MOST_BYTES`, or damaged.
    """
    if member.file_size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20:,} MiB")
    if member.compress_type != ZSTANDARD:
        with archive.open(member) as file:
            return file.read(MOST_BYTES)
    import pyarrow as pa

    with open_plain(str(archive.filename)) as file:
        file.seek(member.header_offset)
        names = struct.unpack(LOCAL_HEADER, file.read(struct.calcsize(LOCAL_HEADER)))[-2:]
        file.seek(sum(names), os.SEEK_CUR)
        compressed = pa.py_buffer(file.read(member.compress_size))
    with pa.CompressedInputStream(compressed, "zstd") as stream:
        found = bytes(stream.read(MOST_BYTES))
    if len(found) != member.file_size or zlib.crc32(found) != member.CRC:
        raise ValueError("it is damaged")
    return found


def _require_means(header: Mapping[str, object], path: Path) -> None:
    reducers = field_of(header, "eval.config.epochs_reducer")
    found = reducers if isinstance(reducers, list) else [reducers]
    if other := [each for each in found if each not in MEAN]:
        raise UnreadableRun(
            f"{path} reduces epochs by {as_text(other[0])}, but Winnow needs the mean of the epochs of a "
            "sample; score the log again with --epochs-reducer mean"
        )


def _scored(sample: Mapping[str, object], choice: Choice, path: Path, model: str, task: str) -> ScoredOutput:
    scores = sample.get("scores")
    value: object = None
    if isinstance(scores, Mapping) and scores:
        name, _, key = (choice.metric or "").partition(":")
        scorer = chosen("metric", [str(each) for each in scores], name or None, path=path)
        value = field_of(scores[scorer], "value") if isinstance(scores[scorer], Mapping) else None
        if isinstance(value, Mapping):
            names = [f"{scorer}:{each}" for each in value]
            value = value[
                chosen("metric", names, f"{scorer}:{key}" if key else None, path=path).split(":", 1)[1]
            ]
    return ScoredOutput(
        candidate=model,
        example=f"{task}/{as_text(sample.get('id'))}",
        score=None if sample.get("error") else _number(value),
        output=as_text(field_of(sample, "output.choices.0.message.content", "output.completion")),
        input=as_text(sample.get("input")),
        targets=as_texts(sample.get("target")),
        group=task,
    )


def _number(value: object) -> float | None:
    if isinstance(value, str):
        if value in LETTERS:
            return LETTERS[value]
        if value.lower() in WORDS:
            return WORDS[value.lower()]
        try:
            return as_score(float(value))
        except ValueError:
            return None
    return as_score(value)
