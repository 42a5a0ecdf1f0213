"""Running golden campaigns and writing their dumps, in a process that `__main__` has started."""

import argparse
import difflib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from campaigns import write_spec
from stored_campaigns import copy_tables
from without_prefect import leave_prefect_out

from tests.golden_campaigns.__main__ import FACTS, HERE, SCHEMA, STREAMING_OFF, WORDING
from tests.golden_campaigns.campaigns import BY_NAME, Place, Scenario
from tests.golden_campaigns.dump import Dump, schema
from tests.golden_campaigns.scripted import register


def write(into: Path, names: list[str], storages: Mapping[str, str]) -> None:
    """Run scenarios, all of them unless some are named, and write their facts and their wording.

    Args:
        into: Gets the files; of those that are not of one scenario alone, what others say in them stays.
        names: The scenarios.
        storages: The URL of the database of each that is not to have a file of SQLite.
    """
    labels, wording = json.loads(_read(HERE / WORDING, "[{}, {}]"))
    if into != HERE:
        wording = {}
    old_labels = {now: then for then, now in labels.items()}
    off = []
    for name in names or BY_NAME:
        scenario = BY_NAME[name]
        dump = _run(scenario, old_labels, storage=storages.get(name), into=into)
        wording[name] = dump.wording
        labels |= {label: label for label in sorted(dump.labels - labels.keys())}
        _write(into / FACTS / f"{name}.txt", dump.facts)
        if scenario.streaming_off and not storages:
            without = _run(scenario, old_labels, streaming=False)
            lines = difflib.unified_diff(dump.facts, without.facts, name, f"{name}, off", n=0, lineterm="")
            off += [each for each in lines if not each.startswith("@@")]
    (into / WORDING).write_text(json.dumps([labels, wording], indent=1, ensure_ascii=False) + "\n")
    if off and (into != HERE or not names):
        _write(into / STREAMING_OFF, off)


def _run(
    scenario: Scenario,
    old_labels: Mapping[str, str],
    *,
    storage: str | None = None,
    streaming: bool | None = None,
    into: Path | None = None,
) -> Dump:
    """Run one scenario in a folder of its own; the first one also tells how the tables look."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        for file, content in scenario.files.items():
            (folder / file).write_text(content)
        for file, spec in scenario.specs.items():
            write_spec(folder, {**spec, "streaming": streaming}, f"{file}.yaml")
        place = Place(folder, storage or f"sqlite:///{folder}/golden.db")
        for step in scenario.steps:
            step(place)
        dump = Dump(scenario, place, old_labels)
        if into is not None and scenario is next(iter(BY_NAME.values())):
            _write(into / SCHEMA, schema(place.storage))
    return dump


def _read(path: Path, otherwise: str) -> str:
    return path.read_text() if path.exists() else otherwise


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each}\n" for each in lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--into", type=Path, default=HERE)
    parser.add_argument("--storage", action="append", default=[])
    arguments = parser.parse_args()
    storages = dict(each.split("=", 1) for each in arguments.storage)
    register()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as own:
        patch.setenv("XDG_CONFIG_HOME", own)
        patch.setenv("XDG_STATE_HOME", own)
        leave_prefect_out(patch)
        copy_tables(patch)
        write(arguments.into, arguments.names, storages)


if __name__ == "__main__":
    main()
