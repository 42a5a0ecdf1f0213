"""Golden campaigns come to the same rows, statuses and exit codes as when their dumps were made.

`tests/golden_campaigns` says what a dump holds, what it leaves out, and how it is new.
"""

import difflib
import json

import pytest

from tests.golden_campaigns.__main__ import FACTS, HERE, SCHEMA, STREAMING_OFF, WORDING, dump

NAMES = sorted(path.stem for path in (HERE / FACTS).iterdir())
ON_POSTGRESQL = (
    "certify",
    "certify-labels",
    "duel-rules",
    "gate",
    "mean-constraints",
    "mean-exact",
    "mean-joined",
    "mean-killed",
    "mean-llm",
    "mean-lookahead",
    "mean-pass-at",
    "mean-people",
    "reuse",
    "route",
    "select-stored",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The folder of the dumps of all golden campaigns."""
    into = tmp_path_factory.mktemp("golden")
    assert dump("--into", str(into)) == 0
    return into


@pytest.fixture(scope="module")
def found_on_postgresql(postgresql, postgresql_template, tmp_path_factory):
    urls = {name: postgresql.new_database(postgresql_template) for name in ON_POSTGRESQL}
    options = [part for name, url in urls.items() for part in ("--storage", f"{name}={url}")]
    into = tmp_path_factory.mktemp("golden")
    assert dump("--into", str(into), *ON_POSTGRESQL, *options) == 0
    yield into
    for url in urls.values():
        postgresql.drop_database(url)


def differences(name, expected, found):
    """Lines that are gone and lines that are new, in a file of dumps."""
    lines = difflib.unified_diff(
        expected.splitlines(), found.splitlines(), f"{name}, expected", "found", n=0, lineterm=""
    )
    return "\n".join(lines)


def require_same(file, found):
    expected, told = (HERE / file).read_text(), (found / file).read_text()
    assert told == expected, differences(file, expected, told)


@pytest.mark.parametrize("name", NAMES)
def test_facts_stay_byte_for_byte(found, name):
    require_same(f"{FACTS}/{name}.txt", found)


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_facts_are_the_same_on_postgresql(found_on_postgresql, name):
    require_same(f"{FACTS}/{name}.txt", found_on_postgresql)


def test_without_streaming_only_what_is_said_of_it_differs(found):
    require_same(STREAMING_OFF, found)


def test_tables_and_views_keep_their_columns(found):
    require_same(SCHEMA, found)


def test_wording_is_as_written_down(found):
    expected, told = (json.loads((folder / WORDING).read_text()) for folder in (HERE, found))
    assert told[0] == expected[0]
    assert (
        "\n".join(
            differences(f"{name}: {command}", "\n".join(expected[1][name][command]), "\n".join(said))
            for name, commands in told[1].items()
            for command, said in commands.items()
        ).strip()
        == ""
    )


def test_each_golden_campaign_has_its_facts_and_nothing_else_has(found):
    assert sorted(path.stem for path in (found / FACTS).iterdir()) == NAMES
