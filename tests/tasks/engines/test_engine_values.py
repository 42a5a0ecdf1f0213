import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from winnow.tasks.engines.errors import (
    EngineDied,
    EngineLoadFailed,
    EngineTimeout,
    is_transient,
    one_sentence,
)
from winnow.tasks.engines.protocol import Request, Sampling, Structure

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -1),
        ("max_tokens", 0),
        ("stop", "###"),
        ("stop", ("",)),
        ("choices", "AB"),
        ("choices", ("A", "")),
        ("choices", ("A", "A")),
        ("choices", ("A",)),
        ("choices", ("A>B", "A")),
        ("min_p", 1.1),
        ("presence_penalty", -2.1),
        ("frequency_penalty", float("nan")),
        ("repetition_penalty", 0.0),
        ("logit_bias", ((3, 101.0),)),
        ("stop_token_ids", (-1,)),
        ("structure", Structure("shape", "round")),  # type: ignore[arg-type]
    ],
)
def test_impossible_sampling_is_refused_with_its_value(field, value):
    with pytest.raises(ValueError, match=f"{field} must be .* got"):
        Sampling(**{field: value})


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_an_engine_could_not_hold_is_refused(seed):
    with pytest.raises(ValueError, match=f"got {seed}"):
        Request(prompt="x", sampling=Sampling(), seed=seed)


def test_only_trouble_with_a_running_engine_is_worth_another_try():
    assert is_transient(EngineDied("m", "gone"))
    assert is_transient(EngineTimeout("m", "slow"))
    assert not is_transient(EngineLoadFailed("m", "no such folder"))
    assert not is_transient(None)


@pytest.mark.parametrize("kind", [EngineDied, EngineTimeout, EngineLoadFailed])
def test_an_engine_error_survives_pickling_by_a_task_runner(kind):
    error = pickle.loads(pickle.dumps(kind("m", "why")))
    assert (type(error), error.model, error.why, str(error)) == (kind, "m", "why", "model 'm': why")


def test_a_foreign_message_becomes_one_bounded_line():
    assert one_sentence(ValueError("a\n  b")) == "ValueError: a b"
    assert len(one_sentence(ValueError("x" * 9_999))) == 400


def test_the_pool_and_its_values_load_no_model_library():
    program = (
        "import sys, winnow.tasks.engines.pool.pool, winnow.tasks.engines.vllm.engine; print(*sys.modules)"
    )
    modules = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).split()
    assert "winnow.tasks.engines.pool.slots" in modules
    assert not {"torch", "transformers", "vllm", "prefect"} & set(modules)
