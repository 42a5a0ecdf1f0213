# ruff: noqa: E501 -- lists of odd values
"""Data files of whatever bytes: datasets, and the labels of humans."""

import io
import json

import pyarrow
import pyarrow.parquet
import pytest
from cases import JSON_VALUES, NASTY_TEXT, damaged, kept, settles
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.tasks.data.datasets import load_dataset
from winnow.tasks.objectives.certify.human_labels import read_labels

ROWS = [{"id": f"e{i}", "input": f"{i} + 1?", "target": str(i + 1), "more": [i, None]} for i in range(4)]


def parquet(**columns):
    """The bytes of a Parquet file."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


WHOLE = {
    ".jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    ".json": json.dumps(ROWS).encode(),
    ".csv": b'id,input,target\ne1,"1, 2",3\ne2,"a ""b""\nc",4\n',
    ".parquet": parquet(id=["a", "b"], input=["x", "y"], target=[1.5, None]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def case(folder, suffix, content):
    """Read it as a dataset, and as labels."""
    path = folder / f"data{suffix}"
    path.write_bytes(content)
    for fields in ({"id": "id", "input": "input", "target": "target"}, {"input": "input"}):
        found = settles(load_dataset, path, fields)
    settles(read_labels, path)
    return found


@pytest.mark.parametrize("path", kept("datasets"), ids=lambda path: path.name)
def test_files_that_are_kept_settle(folder, path):
    case(folder, path.suffix, path.read_bytes())


@pytest.mark.parametrize("suffix", WHOLE)
@tries(10)
@given(data=st.data())
def test_damaged_files_settle(folder, suffix, data):
    case(folder, suffix, data.draw(damaged(WHOLE[suffix])))


@tries(15)
@given(st.sampled_from(sorted(WHOLE)), st.binary(max_size=200))
def test_whatever_bytes_settle(folder, suffix, content):
    case(folder, suffix, content)


NAMES = st.sampled_from(["id", "input", "target", "skip"])


@tries(15)
@given(st.lists(st.dictionaries(NAMES | NASTY_TEXT, JSON_VALUES, max_size=4) | JSON_VALUES, max_size=4))
def test_whatever_rows_settle(folder, rows):
    case(folder, ".json", json.dumps(rows).encode("utf-8", "surrogatepass"))
    case(
        folder,
        ".jsonl",
        "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode("utf-8", "surrogatepass"),
    )


KINDS = st.sampled_from([
    pyarrow.int8(), pyarrow.uint64(), pyarrow.float16(), pyarrow.binary(), pyarrow.date32(), pyarrow.duration("ns"),
    pyarrow.timestamp("ns"), pyarrow.timestamp("s", "Europe/Nowhere"), pyarrow.time64("ns"), pyarrow.month_day_nano_interval(),
    pyarrow.list_(pyarrow.float64()), pyarrow.map_(pyarrow.string(), pyarrow.int8()), pyarrow.large_string(), pyarrow.null(),
    pyarrow.struct([("a", pyarrow.int8())]), pyarrow.decimal128(5, 2), pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
])  # fmt: skip


@tries(15)
@given(KINDS, KINDS, st.integers(-(2**62), 2**62))
def test_whatever_columns_settle(folder, first, second, number):
    def column(kind):
        try:
            return pyarrow.array([number, None], type=pyarrow.int64()).cast(kind)
        except (pyarrow.ArrowException, ValueError):
            return pyarrow.nulls(2, kind)

    try:
        content = parquet(id=["a", "b"], input=column(first), target=column(second))
    except (pyarrow.ArrowException, NotImplementedError):
        return  # no such file can be written
    case(folder, ".parquet", content)
