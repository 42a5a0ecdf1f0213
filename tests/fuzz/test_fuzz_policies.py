# ruff: noqa: E501 -- lists of odd values
"""Exported policies of whatever bytes and values, read back and asked."""

import io
import json
from copy import deepcopy
from hashlib import sha256

import numpy as np
import pytest
from cases import JSON_VALUES, damaged, kept, paths_in, put, settles, taken_out
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from property_settings import tries

from winnow.tasks.objectives.route.router import Router

DIM, K = 3, 2
CONTEXTS = np.eye(DIM, dtype=np.float32)[[0, 1, 2, 0]]
KERNEL = {"name": "rbf", "gamma": 5.0, "bandwidth": 0.5, "squared_length": 1.0}
FORMS = {
    "means": {"means": np.array([0.1, 0.2])},
    "linear": {"weights": np.ones((K, DIM)), "offsets": np.zeros(K)},
    "fourier": {"weights": np.ones((K, 8)), "frequencies": np.ones((4, DIM))},
    "kernel": {"weights": np.ones(4), "contexts": CONTEXTS, "arms": np.array([0, 1, 1, 0])},
    "joint-kernel": {"weights": np.ones(4), "contexts": CONTEXTS, "arms": np.array([0, 1, 1, 0])},
}
NAMES = sorted({name for each in FORMS.values() for name in each} | {"usable"})


def described(form):
    parameters = {"form": form, "dim": DIM, "n_arms": K, "centre": 0.0, "kernel": KERNEL}
    return {
        "format": "winnow-policy",
        "version": 2,
        "embedder": {"type": "precomputed", "path": "vectors.jsonl"},
        "fields": ["input"],
        "embedder_identity": {},
        "candidates": [{"name": "a"}, {"name": "b"}],
        "parameters": parameters,
    }


def npz(members):
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def whole(form):
    """The two files of a policy."""
    return json.dumps(described(form)).encode(), npz(FORMS[form] | {"usable": np.array([True, True])})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("policy")


def sealed(description, content):
    """The description with the digest of these arrays, so that what is odd in either is come to."""
    try:
        read = json.loads(description)
        return json.dumps(read | {"arrays_sha256": sha256(content).hexdigest()}).encode()
    except (ValueError, TypeError, RecursionError):
        return description


def case(folder, description, content):
    """Load it, and ask for a candidate."""
    (folder / "policy.json").write_bytes(sealed(description, content))
    (folder / "policy.npz").write_bytes(content)
    router = settles(Router.load, folder)
    if isinstance(router, Router):
        for prompt in (
            np.array([1.0, 0.0, 0.0]),
            np.array([0.0, np.nan, 1.0]),
            np.ones(4),
            np.array(1.0),
            "text",
        ):
            chosen = settles(router.choose, prompt)
            assert isinstance(chosen, Exception) or chosen in router.candidates
            scores = settles(router.scores, prompt)
            assert isinstance(scores, Exception) or tuple(scores) == router.candidates


@pytest.mark.parametrize("path", kept("policies"), ids=lambda path: path.name)
def test_policies_that_are_kept_settle(folder, path):
    """Each is a folder."""
    case(folder, *((path / name).read_bytes() for name in ("policy.json", "policy.npz")))


@pytest.mark.parametrize("form", FORMS)
def test_what_cases_begin_with_is_a_policy(folder, form):
    description, content = whole(form)
    (folder / "policy.json").write_bytes(sealed(description, content))
    (folder / "policy.npz").write_bytes(content)
    assert Router.load(folder).choose(np.array([1.0, 0.0, 0.0])) in ("a", "b")


@tries(15)
@given(st.data())
def test_damaged_files_settle(folder, data):
    description, content = whole(data.draw(st.sampled_from(sorted(FORMS))))
    if data.draw(st.booleans()):
        description = data.draw(damaged(description))
    else:
        content = data.draw(damaged(content))
    case(folder, description, content)


LIKELY = st.sampled_from(
    [
        "",
        "means",
        "rbf",
        "poly3",
        0,
        -1,
        1,
        2,
        3,
        1e300,
        2**70,
        0.5,
        True,
        None,
        [],
        {},
        "1",
        float("nan"),
        -0.0,
    ]
)


@tries(15)
@given(st.data())
def test_descriptions_with_other_values_settle(folder, data):
    form = data.draw(st.sampled_from(sorted(FORMS)))
    values = deepcopy(described(form))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(sorted(paths_in(values), key=str) or [()]))
        if data.draw(st.booleans()):
            put(values, path, data.draw(LIKELY | JSON_VALUES))
        else:
            taken_out(values, path)
    case(folder, json.dumps(values).encode("utf-8", "surrogatepass"), whole(form)[1])


ARRAYS = st.one_of(
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.uint8, np.complex64, "U2", "S2", "M8[s]"]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
    arrays.arrays(np.int64, (4,), elements=st.integers(-3, 2**62)),
    arrays.arrays(np.float64, (4,)),
    arrays.arrays(np.float64, (K, DIM)),
    arrays.arrays(np.float64, (K,)),
)  # fmt: skip


@tries(20)
@given(
    st.sampled_from(sorted(FORMS)), st.dictionaries(st.sampled_from(NAMES), ARRAYS, min_size=1, max_size=2)
)
def test_other_arrays_settle(folder, form, others):
    members = FORMS[form] | {"usable": np.array([True, True])} | others
    case(folder, whole(form)[0], npz(members))
