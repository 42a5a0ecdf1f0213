import json

import pytest
from pool_engines import ScriptedFactory, ask, model
from tiny_adapters import save_tiny_adapter

from winnow.tasks.candidates.model_refs import model_ref
from winnow.tasks.engines.checkpoints import adapter_args, adapter_rank
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.models import ModelSpec

BASE = {"model": "models/base"}


def test_a_model_and_its_adapters_share_one_engine_that_knows_them_all(tmp_path):
    models = [model(name, lora=lora, **BASE) for name, lora in (("a", "x"), ("plain", None), ("b", "y"))]
    stranger = model("other", lora="z")
    factory = ScriptedFactory()
    with EnginePool(log_folder=tmp_path, factory=factory, models=[*models, stranger]) as pool:
        for each in models:
            pool.generate(each, ask("1"))
    assert factory.diary == ["start a", "close a"]
    assert factory.settings["a"].adapters == ("x", "y")


def test_models_are_gone_through_once_however_many_engines_start(tmp_path):
    passes = []

    class Counted(list):
        def __iter__(self):
            passes.append(1)
            return super().__iter__()

    models = Counted(model(name) for name in ("a", "b", "c"))
    with EnginePool(log_folder=tmp_path, factory=ScriptedFactory(), models=models) as pool:
        for each in list(models):
            pool.generate(each, ask("1"))
    assert len(passes) == 2  # one of them is the test's


def test_each_request_names_the_adapter_of_the_model_that_was_asked(tmp_path):
    class Telling(ScriptedFactory):
        def __call__(self, model, settings):
            engine = super().__call__(model, settings)
            answer = engine.generate
            engine.generate = lambda requests: (
                seen.extend(each.adapter for each in requests) or answer(requests)
            )
            return engine

    seen = []
    with EnginePool(log_folder=tmp_path, factory=Telling()) as pool:
        for lora in ("x", None):
            pool.generate(model("m", lora=lora, **BASE), ask("1", "2"))
    assert seen == ["x", "x", None, None]


def test_an_engine_has_room_for_every_adapter_at_the_largest_rank(tmp_path):
    base = tmp_path / "base"
    folders = [str(save_tiny_adapter(tmp_path / f"{rank}", base, seed=rank, rank=rank)) for rank in (2, 9)]
    assert adapter_args(folders) == {
        "enable_lora": True,
        "max_lora_rank": 16,
        "max_loras": 2,
        "max_cpu_loras": 2,
    }
    assert adapter_args([]) == {}
    assert adapter_args(folders * 6)["max_loras"] == 8


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (None, "there is no adapter in"),
        ("{", "is not the configuration of a LoRA adapter"),
        ("[]", "is not the configuration of a LoRA adapter"),
        ('{"peft_type": "IA3", "r": 4}', "only LoRA adapters"),
        ('{"r": 0}', "has the rank 0"),
        ('{"r": "many"}', "has the rank 'many'"),
        ('{"r": 4, "rank_pattern": {"q_proj": 999}}', "has the rank 999"),
    ],
)
def test_what_is_no_lora_adapter_is_refused_with_its_folder(tmp_path, config, sentence):
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    if config is not None:
        (tmp_path / "adapter_config.json").write_text(config)
    with pytest.raises(ValueError, match=sentence) as caught:
        adapter_rank(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_an_adapter_without_weights_is_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 4}))
    with pytest.raises(ValueError, match=r"holds no adapter_model\.safetensors"):
        adapter_rank(tmp_path)


def test_a_file_that_names_a_wrong_adapter_is_refused_at_its_key(tmp_path):
    spec = ModelSpec(name="m", model="owner/name", lora=str(tmp_path))
    with pytest.raises(SpecError, match="there is no adapter in") as caught:
        model_ref(spec, "models[1]")
    assert caught.value.path == "models[1].lora"


def test_a_provider_that_knows_no_adapters_refuses_them(tmp_path):
    save_tiny_adapter(tmp_path, tmp_path, seed=0)
    spec = ModelSpec(name="m", provider="transformers", model="owner/name", lora=str(tmp_path))
    with pytest.raises(SpecError, match="'transformers' does not support adapters; use provider vllm"):
        model_ref(spec, "models[0]")
    with pytest.raises(EngineLoadFailed, match="does not support adapters"):
        TransformersEngine(model("m", lora=str(tmp_path)))
