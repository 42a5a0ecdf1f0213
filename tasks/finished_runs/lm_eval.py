"""Samples of lm-eval: `samples_TASK_TIME.jsonl`, as `--log_samples` writes them."""

import re
from collections.abc import Iterator, Mapping
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
)

FILE = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d{2}-\d{2}T[\d.:-]+\.jsonl(\.gz)?$")
QUESTIONS = ("question", "query", "problem", "prompt", "input", "text", "sentence")
"""Fields of a document that usually contain the question."""


class LmEvalSamples:
    """Reader of lm-eval's samples.

    One file has the outputs of one model on one task. The model's name is the name of the file's folder.
    """

    name = "lm-eval"

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """See `Reader`."""
        return {"doc_id", "doc", "filtered_resps"} <= row.keys()

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """See `Reader`."""
        named = FILE.search(path.name)
        task = named["task"] if named else path.stem
        model = path.resolve().parent.name.replace("__", "/")
        rows = [row for _, row in read_rows(path)]
        filters = list(dict.fromkeys(str(row.get("filter", "none")) for row in rows))
        filter_ = chosen("filter", filters, choice.filter, path=path)
        for row in rows:
            if str(row.get("filter", "none")) != filter_:
                continue
            if row.get("doc_id") is None:
                raise UnreadableRun(f"{path}: a line has no doc_id; copy the complete file")
            yield ScoredOutput(
                candidate=model,
                example=f"{task}/{row['doc_id']}",
                score=as_score(row.get(_metric(row, choice, path))),
                output=_output(row),
                input=_input(row),
                targets=as_texts(row.get("target")),
                group=task,
            )


def _metric(row: Mapping[str, object], choice: Choice, path: Path) -> str:
    listed = row.get("metrics")
    if isinstance(listed, list) and listed:
        names = [str(each) for each in listed]
    else:  # lm-eval before 0.4.5
        known = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
        names = [key for key, value in row.items() if key not in known and as_score(value) is not None]
    if not names:
        raise UnreadableRun(
            f"{path} has no metric of single documents, so it cannot be compared example by example; use a "
            "task that has one"
        )
    return chosen("metric", names, choice.metric, path=path)


def _output(row: Mapping[str, object]) -> str:
    found = row.get("filtered_resps")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return as_text(found)


def _input(row: Mapping[str, object]) -> str:
    """The question of a document, or else the whole prompt."""
    doc = row.get("doc")
    if isinstance(doc, Mapping):
        for name in QUESTIONS:
            if isinstance(doc.get(name), str):
                return str(doc[name])
    arguments = row.get("arguments")
    if isinstance(arguments, Mapping) and arguments:
        first = next(iter(arguments.values()))
        return as_text(first.get("arg_0") if isinstance(first, Mapping) else first)
    return as_text(doc)
