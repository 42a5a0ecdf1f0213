"""Files of arrays that are damaged, encrypted or packed strangely end in a sentence for every reader."""

import io
import random
import zipfile

import numpy as np
import pytest

from winnow.tasks.data.array_files import DAMAGED
from winnow.tasks.data.preference_tables import _features
from winnow.tasks.data.score_tables import ScoreTable, read_table
from winnow.tasks.data.table_examples import array_of
from winnow.tasks.errors import WinnowError

TABLE = ScoreTable(source="t", candidates=["a", "b"], examples=None, scores=np.zeros((2, 3)))


def saved(compress):
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, scores=np.zeros((2, 3)), features=np.ones((2, 3)))
    return file.getvalue()


def flagged(data, flag):
    """The same members with a bit of the general purpose flag set, in both headers; 1 is encrypted."""
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = changed.find(signature)
        while at >= 0:
            changed[at + offset] |= flag
            at = changed.find(signature, at + 4)
    return bytes(changed)


def packed_as(data, method):
    """The same members, said to be compressed by a method."""
    changed = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = changed.find(signature)
        while at >= 0:
            changed[at + offset] = method
            at = changed.find(signature, at + 4)
    return bytes(changed)


BROKEN = {
    "encrypted": flagged(saved(False), 1),
    "unknown packing": packed_as(saved(False), 99),
    "not deflated": packed_as(saved(False), zipfile.ZIP_DEFLATED),
    "not lzma": packed_as(saved(False), zipfile.ZIP_LZMA),
    "cut": saved(True)[:200],
    "empty": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_broken_is_a_sentence_for_every_reader(tmp_path, name):
    path = tmp_path / "x.npz"
    path.write_bytes(BROKEN[name])
    for read in (
        lambda: read_table(str(path), "scores"),
        lambda: array_of("contexts", f"{path}:scores", TABLE, 2),
        lambda: _features(str(path), 2),
    ):
        with pytest.raises(WinnowError):
            read()


@pytest.mark.parametrize("compress", [False, True])
def test_flipped_bytes_are_read_or_refused_and_nothing_else_is_raised(tmp_path, compress):
    path, draw = tmp_path / "x.npz", random.Random(7)
    refused = 0
    for _ in range(400):
        data = bytearray(saved(compress))
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            read_table(str(path), "scores")
            array_of("contexts", f"{path}:features", TABLE, 2)
        except WinnowError:
            refused += 1
    assert refused > 100


def test_what_is_damaged_is_no_wider_than_errors():
    assert not issubclass(Exception, DAMAGED)
