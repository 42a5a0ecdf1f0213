"""Everything that the dumps leave out. This list does not grow: what is not here stays, byte for byte.

Times and durations, hosts and processes, versions and paths differ from run to run or from machine to
machine. Numbers of rows (`id`) say in which order rows were written: a row stands under its natural key
instead. Digests are cut to 16 characters, long prompts to 60 beside their digest, and floats to 9 significant
digits, because processors differ in the last ones.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

TIMES = {"annotated_at", "created_at", "decided_at", "ended_at", "heartbeat_at", "labelled_at", "planned_at"}
MOMENTS = {"held_at", "released_at"}
"""Times of which it is a fact whether there are any."""
DURATIONS = {"load_seconds", "model_loads.seconds", "share_of_loading"}
MEASURED = {"engine_seconds", "input_by_seconds", "output_by_seconds", "second_squares", "seconds"}
"""Durations of outputs. Scripted engines state them; they are masked for `winnow.select`, which measures,
and so are the tables of its report."""
PROCESSES = {
    "leases.beats",
    "leases.boot_id",
    "leases.host",
    "leases.pid",
    "leases.pid_namespace",
    "leases.started_ticks",
}
FILES = {
    "file_digests.changed_ns",
    "file_digests.inode",
    "file_digests.modified_ns",
    "file_digests.path",
    "file_digests.place",
}
VERSIONS = {"alembic_version.version_num", "campaigns.versions", "pruned_campaigns.versions"}
DIGESTS_OF_TIMES = {"decisions.digest", "row_digest"}
LEFT_OUT = TIMES | PROCESSES | FILES | VERSIONS | DIGESTS_OF_TIMES
"""Columns of tables and views (of one table: TABLE.COLUMN)."""
MASKED = MOMENTS | DURATIONS
"""Columns, and keys of JSON, of which it is a fact whether they are null."""

SENTENCES = (
    (re.compile(r"[0-9.,]+/s\b"), "*/s"),
    (re.compile(r"[0-9][0-9.,]* (s|h|min|ms)\b"), r"* \1"),
    (re.compile(r"\([0-9.]+% of both\)"), "(*% of both)"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(\+00:00|Z)?"), "*"),
    (re.compile(r"process [0-9]+ on \S+"), "process * on *"),
)
"""Times, durations and processes in sentences."""
DIGEST = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{16,}\b")
PROMPT = 60


def is_left_out(table: str, column: str) -> bool:
    """Whether the dumps have no such column."""
    return not LEFT_OUT.isdisjoint((column, f"{table}.{column}"))


def is_masked(table: str, column: str, *, is_timed: bool) -> bool:
    """Whether a value is masked; `table` is empty for a key of JSON."""
    return not MASKED.isdisjoint((column, f"{table}.{column}")) or (is_timed and column in MEASURED)


def sentence(text: str, paths: Mapping[str, str]) -> str:
    """A sentence without times, durations, processes and paths."""
    for path, name in paths.items():
        text = text.replace(path, name)
    for pattern, put in SENTENCES:
        text = pattern.sub(put, text)
    return text


def line(value: Any, paths: Mapping[str, str]) -> str:
    """A value as JSON on one line, without paths, with short digests and floats of 9 significant digits."""
    text = json.dumps(_rounded(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for path, name in paths.items():
        text = text.replace(path, name)
    return DIGEST.sub(r"\1", text)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
