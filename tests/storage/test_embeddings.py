"""Vectors are shared by all campaigns of an embedder, and never overwritten."""

import pytest

from winnow.storage.engine.raw_sql import PARAMETERS_AT_ONCE
from winnow.storage.errors import ConflictingRecord
from winnow.storage.models import Embedding
from winnow.storage.records import generations

DIGESTS = [f"{number:064x}" for number in range(PARAMETERS_AT_ONCE + 3)]


def stored(database, embedder, digests):
    with database.reading() as session:
        return generations.vectors(session, embedder, digests)


def add(database, embedder, new):
    with database.writing() as session:
        generations.add_vectors(session, embedder, new)


def test_vectors_come_back_byte_for_byte_and_only_those_asked_for(database):
    add(database, "e", {digest: digest.encode() for digest in DIGESTS})
    assert stored(database, "e", DIGESTS) == {digest: digest.encode() for digest in DIGESTS}
    assert stored(database, "e", [DIGESTS[5], "f" * 64]) == {DIGESTS[5]: DIGESTS[5].encode()}
    assert stored(database, "e", []) == {}


def test_another_embedder_has_vectors_of_its_own(database):
    add(database, "e", {DIGESTS[0]: b"one"})
    assert stored(database, "f", DIGESTS[:1]) == {}
    add(database, "f", {DIGESTS[0]: b"two"})
    assert stored(database, "e", DIGESTS[:1]) == {DIGESTS[0]: b"one"}


def test_a_vector_that_is_there_stays_as_it_is(database):
    add(database, "e", {DIGESTS[0]: b"first"})
    add(database, "e", {DIGESTS[0]: b"second", DIGESTS[1]: b"new"})
    assert stored(database, "e", DIGESTS) == {DIGESTS[0]: b"first", DIGESTS[1]: b"new"}


def test_the_database_itself_keeps_one_vector_per_text(database):
    add(database, "e", {DIGESTS[0]: b"first"})
    with pytest.raises(ConflictingRecord), database.writing() as session:
        session.add(Embedding(embedder="e", digest=DIGESTS[0], vector=b"second"))
