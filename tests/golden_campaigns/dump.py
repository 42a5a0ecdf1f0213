"""The dump of a scenario that has run: facts (rows, status, exit codes) and wording apart from each other."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from typing import Any

from sqlalchemy import MetaData, Table, create_engine, inspect, select, text
from sqlalchemy.engine import Connection

from tests.golden_campaigns.campaigns import Place, Scenario
from tests.golden_campaigns.masks import PROMPT, is_left_out, is_masked, line, sentence

MASK = "*"
LINES = "lines"
"""The key of the answer's lines, each a label and a sentence."""
SENTENCES = ("left", "resume", "sentence", "sure")
"""Keys of JSON that hold a sentence."""

NATURAL = {
    "datasets": ("fingerprint",),
    "embeddings": ("embedder", "digest"),
    "prompts": ("digest",),
    "campaigns": ("name",),
    "examples": ("key",),
    "candidates": ("campaign_id", "name"),
    "rounds": ("campaign_id", "number"),
    "canaries": ("model", "name", "epoch"),
    "generations": ("key",),
    "comparisons": ("round_id", "position"),
    "annotation_tasks": ("key",),
}
"""By which columns a row is named that others refer to by `id`."""

VIEWS = ("v_campaigns", "v_coverage", "v_costs", "v_head_to_head", "v_leaderboard", "v_reuse")
"""Views whose rows are dumped. Those of the others restate single rows of tables."""


class Dump:
    """Facts and wording of one scenario.

    Args:
        labels: The label of an answer's line as it is now -> as it was when the dumps were first made.
    """

    def __init__(self, scenario: Scenario, place: Place, labels: Mapping[str, str]) -> None:
        self.facts: list[str] = []
        self.wording: dict[str, list[str]] = {}
        self.labels: set[str] = set()
        """Those that were met, as they were."""
        self._place, self._old_label, self._is_timed = place, labels, scenario.is_timed
        self._paths = {place.storage: "STORAGE", str(place.folder): "FOLDER"}
        self._commands()
        names = self._names()
        for name in names:
            self._status(name)
            self._report(name)
        for name, view in scenario.queries:
            self._query(name, view)
        if names:
            self._exit("db check", place.winnow("db", "check").returncode)
            self._rows()

    def _exit(self, command: str, code: int) -> None:
        self.facts.append(f"exit {code} {command}")

    def _say(self, command: str, sentences: list[str]) -> None:
        self.wording[command] = [sentence(each, self._paths) for each in sentences]

    def _commands(self) -> None:
        for number, (command, code, out, err) in enumerate(self._place.ran):
            self._exit(command, code)
            if command.endswith("--json"):
                self.facts.append(
                    f"json {command} {line(self._without_sentences('', json.loads(out), []), self._paths)}"
                )
                out = ""
            self._say(f"{number} {command}", [*out.splitlines(), *err.splitlines()])
        self.facts += self._place.facts

    def _names(self) -> list[str]:
        listed = self._place.winnow("status", "--json")
        return [each["name"] for each in json.loads(listed.stdout)] if listed.returncode == 0 else []

    def _status(self, name: str) -> None:
        shown = self._place.winnow("status", name, "--json")
        self._exit(f"status {name}", shown.returncode)
        said: list[str] = []
        for key, value in json.loads(shown.stdout).items():
            found = self._without_sentences(key, value, said)
            rows = found if isinstance(found, list) and found and isinstance(found[0], dict) else [found]
            self.facts += [f"status {name} {key} {line(each, self._paths)}" for each in rows]
        self._say(f"status {name}", said)

    def _without_sentences(self, key: str, value: Any, said: list[str]) -> Any:
        """JSON whose sentences are moved to the wording."""
        if value is None:
            return None
        if is_left_out("", key) or is_masked("", key, is_timed=self._is_timed):
            return MASK
        if key == LINES:
            old = [self._old_label.get(label, label) for label, _ in value]
            self.labels.update(old)
            said += [f"{label}: {each}" for label, (_, each) in zip(old, value, strict=True)]
            return old
        if key in SENTENCES:
            said.append(str(value))
            return "a sentence"
        if isinstance(value, dict):
            return {name: self._without_sentences(name, each, said) for name, each in value.items()}
        return (
            [self._without_sentences("", each, said) for each in value] if isinstance(value, list) else value
        )

    def _report(self, name: str) -> None:
        shown = self._place.winnow("report", name)
        self._exit(f"report {name}", shown.returncode)
        answer, _, _ = shown.stdout.partition("\n\n")
        self._say(f"report {name}", (answer if self._is_timed else shown.stdout).splitlines())

    def _query(self, name: str, view: str) -> None:
        found = self._place.winnow("query", name, view, "--json")
        self._exit(f"query {name} {view}", found.returncode)
        rows = [self._without_sentences("", row, []) for row in json.loads(found.stdout)]
        self.facts += [f"query {name} {view} {line(row, self._paths)}" for row in rows]

    def _rows(self) -> None:
        engine = create_engine(self._place.storage)
        metadata = MetaData()
        metadata.reflect(engine)
        with closing(engine.connect()) as connection:
            known = _natural_keys(connection, metadata)
            for name, table in sorted(metadata.tables.items()):
                if not name.startswith("sqlite_"):
                    self._table(name, _referring(connection, table, known))
            for view in VIEWS:
                rows = connection.execute(text(f"SELECT * FROM {view}")).mappings()
                self._table(view, ({k: v for k, v in row.items() if not k.endswith("id")} for row in rows))
        engine.dispose()

    def _table(self, name: str, rows: Iterator[dict[str, Any]]) -> None:
        """Add the rows of a table, without values that are null."""
        found = []
        for row in rows:
            kept = {
                column: self._value(name, column, value)
                for column, value in row.items()
                if value is not None and not is_left_out(name, column)
            }
            found.append(f"{name} {line(kept, self._paths)}")
        self.facts += sorted(found)

    def _value(self, table: str, column: str, value: Any) -> Any:
        if is_masked(table, column, is_timed=self._is_timed):
            return MASK
        if table == "prompts" and column == "text":
            return value[:PROMPT]
        if isinstance(value, bool) and table in VIEWS:  # of PostgreSQL
            return int(value)
        if isinstance(value, Decimal):  # sums of PostgreSQL
            return int(value) if value == int(value) else float(value)
        if isinstance(value, bytes | memoryview):
            return bytes(value).hex()
        if isinstance(value, str) and value[:1] in "[{":  # JSON of a view, and of SQLite
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value


def schema(storage: str) -> list[str]:
    """Each table and view with its columns."""
    engine = create_engine(storage)
    with closing(engine.connect()) as connection:
        found = inspect(connection)
        kinds = (("table", found.get_table_names()), ("view", found.get_view_names()))
        lines = [
            f"{kind} {name}: {' '.join(column['name'] for column in found.get_columns(name))}"
            for kind, names in kinds
            for name in names
        ]
    engine.dispose()
    return sorted(lines)


Names = dict[str, dict[int, str]]
"""By table, the natural key of each row."""


def _natural_keys(connection: Connection, metadata: MetaData) -> Names:
    known: Names = {}
    for table in metadata.sorted_tables:
        if columns := NATURAL.get(table.name):
            known[table.name] = {
                row["id"]: "/".join(str(_refer(table, each, row[each], known)) for each in columns)
                for row in connection.execute(select(table)).mappings()
            }
    return known


def _referring(connection: Connection, table: Table, known: Names) -> Iterator[dict[str, Any]]:
    """The rows of a table without their numbers, each referring to others by natural keys."""
    for row in connection.execute(select(table)).mappings():
        yield {name: _refer(table, name, value, known) for name, value in row.items() if name != "id"}


def _refer(table: Table, column: str, value: Any, known: Names) -> Any:
    if value is not None:
        for key in table.columns[column].foreign_keys:
            return known[key.column.table.name][value]
    return value
