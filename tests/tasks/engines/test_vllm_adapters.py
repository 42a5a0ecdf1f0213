"""A real vLLM engine with LoRA adapters, against the same adapters merged into the weights."""

import pytest
from tiny_adapters import merge, save_tiny_adapter
from tiny_models import save_tiny_llama

from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import RequestGroup
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.transformers.engine import TransformersEngine

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm_imports")]

PROMPTS = [f"{i}+{i * i}=" for i in range(10)]
ARGS = {"dtype": "float32", "max_model_len": 64}
CHOICES = ("A", "B", "C")


def requests():
    written = [Request(prompt=each, sampling=Sampling(max_tokens=8), seed=0) for each in PROMPTS]
    return [*written, Request(prompt="1+1=", sampling=Sampling(choices=CHOICES), seed=0)]


def texts(answers):
    return [answer.text for answer in answers]


def test_a_base_and_two_adapters_make_one_load_and_each_answers_as_if_it_were_merged(tmp_path):
    base = save_tiny_llama(tmp_path / "base", seed=0)
    adapters = {
        name: save_tiny_adapter(tmp_path / name, base, seed=seed, rank=rank)
        for name, seed, rank in (("low", 1, 4), ("high", 2, 12))
    }
    expected = {"plain": base}
    expected |= {
        name: merge(base, adapter, tmp_path / f"merged-{name}") for name, adapter in adapters.items()
    }
    models = [
        ModelRef(
            name=name,
            provider="vllm",
            model=str(base),
            model_args=ARGS,
            lora=str(adapters[name]) if name in adapters else None,
        )
        for name in expected
    ]
    with EnginePool(log_folder=tmp_path, models=models, most_asleep=1) as pool:
        asks = [RequestGroup(model=each, requests=requests()) for each in [*models, *models]]
        answered = dict(pool.answers(asks))
        loads = pool.take_loads()
    assert [(load.model, load.kind) for load in loads] == [("plain", "load")]
    assert 0.5 < loads[0].seconds < 300
    for number, name in enumerate([*expected, *expected]):
        merged = TransformersEngine(
            ModelRef(name=name, provider="transformers", model=str(expected[name]), model_args=ARGS)
        )
        plain = merged.generate(requests())
        assert texts(answered[number]) == texts(plain), name
        assert answered[number][-1].choice_logprobs == pytest.approx(plain[-1].choice_logprobs, abs=1e-3)
    assert len({tuple(texts(answered[number])) for number in range(3)}) == 3
