"""What is asked and decided is the same on SSE, AVX2 and AVX-512 machines; only a library's fits differ.

NumPy, OpenBLAS and the C library choose their code by the processor: sums, products and square roots are the
same everywhere, logarithms, exponentials and matrix products differ in their last bits. The environment has
this machine take itself for an older one.
"""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import told_worlds
from selector_worlds import BestDuelWorld, BestMeanWorld, CertifyWorld, FixedDuelWorld, RouteWorld

from winnow.algorithms.registry import selector_names

AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
AVX2 = "SSSE3 SSE41 POPCNT SSE42 AVX F16C FMA3 AVX2"
OLDER = {
    "avx2": {"NPY_DISABLE_CPU_FEATURES": AVX512, "OPENBLAS_CORETYPE": "Haswell"},
    "sse": {
        "NPY_DISABLE_CPU_FEATURES": f"{AVX2} {AVX512}",
        "OPENBLAS_CORETYPE": "Nehalem",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    },
}
"""Environments in which this machine takes itself for an older one."""

FITTED = {"champion", "llm-po-bt", "lrf", "naive-pooling", "pulse", "ucb-e-lrf", "ucb-e-lrf-score-only"}
"""Selectors with estimates, controls or a ranking that linear algebra fits: equal to within `CLOSE` only."""

CLOSE = 1e-7

WORLDS = {
    ("best-mean", "plain"): BestMeanWorld(6, 30),
    ("best-mean", "unscored"): BestMeanWorld(6, 30, unscored=0.1, seed=1),
    ("best-duel", "unscored"): BestDuelWorld(5, spread=3.0, unscored=0.05),
    ("best-duel", "deterministic"): FixedDuelWorld(20),
    ("certify", "unscored"): CertifyWorld((0.02, 0.1, 0.02), 150, unscored=0.01),
    ("route", "plain"): RouteWorld(n_examples=90),
}
"""Made here, so that every process is shown the same outcomes to the last bit."""


def told_on(folder, worlds, environment):
    output = folder / "told.json"
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("told_worlds.py")), str(worlds), str(output)],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        | environment,
        check=True,
    )
    return json.loads(output.read_text())


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    path = tmp_path_factory.mktemp("worlds") / "worlds.pickle"
    path.write_bytes(pickle.dumps(WORLDS))
    return path


@pytest.fixture(scope="module")
def here(worlds, tmp_path_factory):
    """What this machine says; this process makes no more of it than another one would."""
    output = tmp_path_factory.mktemp("here") / "told.json"
    told_worlds.main(worlds, output)
    return json.loads(output.read_text())


def numbers(rounds):
    return np.concatenate([np.frombuffer(bytes.fromhex(each)) for _, rows in rounds for each in rows])


@pytest.mark.parametrize("family", OLDER)
def test_every_selector_asks_and_decides_the_same_on_an_older_processor(here, worlds, tmp_path, family):
    there = told_on(tmp_path, worlds, OLDER[family])
    assert {name.split()[0] for name in here} == set(selector_names())
    for name, rounds in here.items():
        assert [words for words, _ in there[name]] == [words for words, _ in rounds], name
        if name.split()[0] in FITTED:
            np.testing.assert_allclose(
                numbers(there[name]), numbers(rounds), rtol=0, atol=CLOSE, err_msg=name
            )
        else:
            assert there[name] == rounds, name
