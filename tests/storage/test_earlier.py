"""The same example in another file, whatever it is called there."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_settings import tries
from stored_campaigns import NOW

from winnow.storage.queries.objective.earlier_campaigns import positions_elsewhere
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import NewExample


def stored(session, name, examples):
    """A dataset of examples, each a key and an input."""
    return dataset_records.ensure_dataset(
        session,
        fingerprint=name,
        name=name,
        path=f"{name}.jsonl",
        examples=[
            NewExample(key=key, fields={"input": said, "of": name}, targets=["x"]) for key, said in examples
        ],
        now=NOW,
    )


def found(database, here, there, positions):
    with database.writing() as session:
        try:
            ids = stored(session, "here", here), stored(session, "there", there)
            return positions_elsewhere(session, ids[0], positions, ids[1])
        finally:
            session.rollback()


def literally(here, there, positions):
    here, there = ([(key, json.dumps(said)) for key, said in side] for side in (here, there))
    once = [Counter(said for _, said in side) for side in (here, there)]
    return {
        other
        for position in positions
        for other, (key, said) in enumerate(there)
        if said == here[position][1] and (key == here[position][0] or once[0][said] == once[1][said] == 1)
    }


NUMBERED = [("0", "a"), ("1", "b"), ("2", "c"), ("3", "c")]


@pytest.mark.parametrize(
    ("there", "positions", "expected"),
    [
        (NUMBERED, [0, 2], {0, 2}),
        # A row was put first: all row numbers are others.
        ([("0", "new"), ("1", "a"), ("2", "b"), ("3", "d")], [0, 1, 2], {1, 2}),
        # A number that stands for something else is no example that was seen.
        ([("0", "x"), ("1", "y")], [0, 1, 2, 3], set()),
        # Which of two examples with one input is meant, only their keys can say.
        ([("2", "c"), ("5", "c")], [2, 3], {0}),
        ([("7", "c")], [2, 3], set()),
        ([("7", "a"), ("8", "a")], [0], set()),
    ],
)
def test_an_example_is_known_by_its_key_or_by_an_input_that_stands_once(database, there, positions, expected):
    assert found(database, NUMBERED, there, positions) == expected == literally(NUMBERED, there, positions)


FILES = st.lists(
    st.tuples(st.sampled_from("01234567"), st.sampled_from(["a", "b", "c", 1, "1", None, ["a"], "é"])),
    unique_by=lambda each: each[0],
    max_size=8,
)


@tries(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(here=FILES, there=FILES, data=st.data())
def test_it_finds_what_a_literal_search_finds(database, here, there, data):
    positions = data.draw(st.lists(st.integers(0, len(here) - 1), unique=True)) if here else []
    assert found(database, here, there, positions) == literally(here, there, positions)
