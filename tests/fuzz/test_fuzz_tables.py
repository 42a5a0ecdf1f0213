# ruff: noqa: E501 -- lists of odd values
"""Score tables and tables of preferences of whatever bytes and values."""

import io

import numpy as np
import pytest
from cases import NASTY_TEXT, damaged, kept, settles
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from property_settings import tries
from test_fuzz_datasets import parquet

from winnow.tasks.campaign.earlier_scores import load_score_table
from winnow.tasks.data.preference_tables import PreferenceTable, load_preference_table
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.data.table_examples import array_of

STORAGE = "sqlite:///none.db"


def npz(**members):
    """The bytes of a .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **members)
    return buffer.getvalue()


SCORES = np.array([[0.0, 1.0, 0.5], [1.0, np.nan, 0.25]])
BEATS = np.array([[0.5, 0.7], [0.3, 0.5]])
WHOLE = {
    ".npz": npz(scores=SCORES, preferences=BEATS, features=np.eye(2), names=np.array(["a", "b"])),
    ".csv": b"name,e1,e2\na,0.5,1\nb,,0.25\n",
    ".parquet": parquet(name=["a", "b"], e1=[0.5, 1.0], e2=[0.0, None]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def case(folder, suffix, content):
    """Read it as scores, as preferences, and as vectors of examples."""
    path = folder / f"table{suffix}"
    path.write_bytes(content)
    scores = settles(load_score_table, str(path), STORAGE)
    if isinstance(scores, ScoreTable):
        known = scores.scores[~np.isnan(scores.scores)]
        assert ((known >= 0.0) & (known <= 1.0)).all()
        assert scores.scores.shape[0] == len(scores.candidates) == len(set(scores.candidates))
        settles(array_of, "--contexts", str(path), scores, 2)
    preferences = settles(load_preference_table, str(path), STORAGE)
    if isinstance(preferences, PreferenceTable):
        assert preferences.features is None or preferences.features.dtype == np.float64


@pytest.mark.parametrize("path", kept("tables"), ids=lambda path: path.name)
def test_files_that_are_kept_settle(folder, path):
    case(folder, path.suffix, path.read_bytes())


@pytest.mark.parametrize("suffix", WHOLE)
@tries(12)
@given(data=st.data())
def test_damaged_files_settle(folder, suffix, data):
    case(folder, suffix, data.draw(damaged(WHOLE[suffix])))


SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ARRAYS = st.one_of(
    arrays.arrays(np.float64, SHAPES, elements=st.floats(0, 1) | st.floats()),
    arrays.arrays(
        st.sampled_from(
            [np.float16, np.int8, np.uint64, np.bool_, "U3", "S3", "M8[ns]", "m8[s]", np.complex64]
        ),
        SHAPES,
    ),
    arrays.arrays([("a", "f4"), ("b", "i2")], SHAPES),
)


@tries(20)
@given(
    st.dictionaries(
        st.sampled_from(["scores", "preferences", "features", "names", "models"]), ARRAYS, max_size=3
    )
)
def test_whatever_arrays_settle(folder, members):
    case(folder, ".npz", npz(**members))


@tries(15)
@given(
    st.lists(st.lists(NASTY_TEXT | st.floats().map(str), max_size=4).map(",".join), max_size=4).map("\n".join)
)
def test_whatever_cells_settle(folder, text):
    case(
        folder,
        ".csv",
        text.encode(
            "utf-8",
            "surrogateescape"
            if any("\udc80" <= c <= "\udcff" for c in text)
            and not any("\ud800" <= c < "\udc80" for c in text)
            else "replace",
        ),
    )


HEADERS = st.fixed_dictionaries({
    "descr": st.sampled_from(["'<f8'", "'|O'", "'<f8' * 9", "[('a', '<f8')]", "'<U99999999'", "'>f2'", "5", "'zz'", "('<f8', (10**9,))"]),
    "fortran_order": st.sampled_from(["False", "True", "None"]),
    "shape": st.sampled_from(["(2, 3)", "(2**40, 2**20)", "(-1, 3)", "()", "(2, 3, )" * 2, "'x'", "(1.5, 2)", "(0, 5)", "(2**62, 4)"]),
})  # fmt: skip


@tries(15)
@given(HEADERS, st.binary(max_size=60))
def test_whatever_a_header_promises_settles(folder, header, rest):
    import zipfile

    said = ("{" + ", ".join(f"'{key}': {value}" for key, value in header.items()) + "}\n").encode()
    member = b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + rest
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("scores.npy", member)
        archive.writestr("preferences.npy", member)
    case(folder, ".npz", buffer.getvalue())
