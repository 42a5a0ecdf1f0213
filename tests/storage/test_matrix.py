"""Examples are found by words of their keys and fields, however these are stored."""

import pytest
from hostile_texts import HOSTILE_TEXTS
from stored_campaigns import NOW, store_campaign

from winnow.storage.queries.matrix import matrix_rows
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import NewExample

HOSTILE = [each[:1_000] for each in HOSTILE_TEXTS if each.strip()]
INPUTS = [
    'Où est le café "Flore"?',
    r"C:\new_table is 100% full",
    "two\nlines",
    "\N{GRINNING FACE} a\0b",
    "nothing like it",
    *HOSTILE,
]


@pytest.fixture
def kept_inputs(kept, backend):
    return kept(backend, with_inputs)


def with_inputs(database):
    """A campaign whose first candidate was asked one example for each of the inputs."""
    made = [
        NewExample(key=f"k{i} Flöte", fields={"input": each}, targets=[]) for i, each in enumerate(INPUTS)
    ]
    with database.writing() as session:
        dataset_records.ensure_dataset(
            session, fingerprint="f" * 64, name="inputs", path="inputs.jsonl", examples=made, now=NOW
        )
    campaign = store_campaign(database)
    campaign.finish(campaign.plan(0, [0] * len(made), range(len(made))), [1.0] * len(made))
    return campaign


def found(campaign, words):
    with campaign.database.reading() as session:
        rows = matrix_rows(session, campaign.record.id, ["a"], words=words, most=100)
    return [int(row.example.removeprefix("k").split()[0]) for row in rows]


@pytest.mark.parametrize(
    ("words", "which"),
    [
        ("EST LE", [0]),
        ("Café", [0]),
        ('"flore"', [0]),
        ("où est", [0]),
        ("c:\\New", [1]),
        ("\\n", [1]),
        ("100% f", [1]),
        ("100_", []),
        ("two\nlines", [2]),
        ("\N{GRINNING FACE}", [3]),
        ("A\0B", [3]),
        ("k4 flö", [4]),
        ("k4\0", []),
        ('a%é"' * 50_000, []),
    ],
)
def test_words_are_found_in_the_fields_and_the_key(kept_inputs, words, which):
    assert [each for each in found(kept_inputs, words) if each < len(INPUTS) - len(HOSTILE)] == which


def test_each_input_is_found_by_itself(kept_inputs):
    for number, each in enumerate(INPUTS):
        assert number in found(kept_inputs, each)
