"""What engines do where there are GPUs, looked at without one: stand-ins say what a GPU would."""

import fcntl
import os
import sys
import threading
from types import SimpleNamespace

import pytest
import torch
import transformers
from pool_engines import ScriptedFactory, ask, model
from tiny_models import save_tiny_llama
from waiting import eventually

from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.pool.loads_and_evictions import memory_share
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.engines.vllm import engine as vllm_engine
from winnow.tasks.engines.vllm import loaded_model
from winnow.tasks.engines.vllm.engine import VllmEngine
from winnow.tasks.engines.vllm.loaded_model import DeviceLock

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def vllm(monkeypatch):
    """A stand-in for vLLM, whose models are the arguments that they were loaded with."""

    def vllm(*, is_cpu=False, is_invariant=False, exceptions=None):
        platform = SimpleNamespace(
            is_cpu=lambda: is_cpu, get_device_name=lambda: H100, is_sleep_mode_available=lambda: not is_cpu
        )
        envs = SimpleNamespace(VLLM_BATCH_INVARIANT=is_invariant)
        for name, module in {
            "vllm": SimpleNamespace(
                LLM=dict,
                SamplingParams=dict,
                envs=envs,
                exceptions=exceptions or SimpleNamespace(),
                __version__="0.32.0",
            ),
            "vllm.sampling_params": SimpleNamespace(RequestOutputKind=None),
            "vllm.lora.request": SimpleNamespace(LoRARequest=None),
            "vllm.platforms": SimpleNamespace(current_platform=platform),
        }.items():
            monkeypatch.setitem(sys.modules, name, module)

    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    monkeypatch.setattr(loaded_model, "_obey_dynamo_switch", lambda: None)
    return vllm


def asked_for(monkeypatch, **how):
    """The settings of an engine that a pool started."""
    factory = ScriptedFactory()
    with EnginePool(log_folder="logs", factory=factory, **how) as pool:
        pool.generate(model("a"), ask("x"))
    return factory.settings["a"]


@pytest.mark.parametrize(
    ("how", "share"),
    [
        ({}, 1.0),
        ({"devices": [0, 1]}, 1.0),
        ({"max_loaded": 5}, 0.2),
        ({"devices": [0, 1], "max_loaded": 2}, 0.5),
        ({"most_asleep": 4}, 0.84),
        ({"most_asleep": 100, "max_loaded": 2}, 0.25),
    ],
)
def test_models_that_may_be_on_a_device_at_once_share_its_memory(monkeypatch, how, share):
    assert asked_for(monkeypatch, **how).memory_share == pytest.approx(share)


@pytest.mark.parametrize(
    ("share", "given", "taken"),
    [
        (0.2, {}, pytest.approx(0.184)),
        (1.0, {}, None),  # what vLLM takes by itself
        (0.2, {"gpu_memory_utilization": 0.7}, 0.7),
    ],
)
def test_a_share_counts_where_the_user_names_none(vllm, share, given, taken):
    vllm()
    assert loaded_model._new_llm(share, **given).get("gpu_memory_utilization") == taken


def test_on_a_cpu_nothing_is_said_of_the_memory_of_a_gpu(vllm):
    vllm(is_cpu=True)
    assert "gpu_memory_utilization" not in loaded_model._new_llm(0.2)


def test_five_models_on_one_device_leave_room_for_the_last(vllm):
    vllm()
    takes = loaded_model._new_llm(memory_share(5, 0))["gpu_memory_utilization"]
    free = 1.0 - 4 * takes
    assert free >= takes  # what vLLM looks at before it loads


def test_what_vllm_refuses_is_known_in_versions_without_a_common_class(vllm):
    vllm()
    assert loaded_model._refusals() == (ValueError, ValueError)
    newer = type("VLLMClientError", (Exception,), {})
    vllm(exceptions=SimpleNamespace(VLLMClientError=newer))
    assert loaded_model._refusals() == (newer, ValueError)


@pytest.mark.parametrize(
    ("is_cpu", "is_invariant", "identity"),
    [
        (True, False, "vllm 0.32.0 cpu bfloat16"),
        (True, True, "vllm 0.32.0 cpu bfloat16"),  # it computes as it would without
        (False, False, f"vllm 0.32.0 {H100} bfloat16"),
        (False, True, f"vllm 0.32.0 {H100} bfloat16 batch-invariant"),
    ],
)
def test_vllm_is_batch_invariant_where_it_has_that(vllm, is_cpu, is_invariant, identity):
    vllm(is_cpu=is_cpu, is_invariant=is_invariant)
    assert loaded_model._identity(torch.bfloat16) == identity


@pytest.fixture
def lock(tmp_path, monkeypatch):
    def lock(devices, *, is_shared=True):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if devices is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
        return DeviceLock(tmp_path / "logs", is_shared=is_shared)

    return lock


@pytest.mark.parametrize(("ours", "theirs"), [("0", "0"), ("1,0", "0,1"), (None, None), ("0,1", "1")])
def test_who_loads_on_a_shared_device_waits_for_who_is_loading_there(lock, ours, theirs):
    first, second = lock(ours), lock(theirs)
    got_it = threading.Event()

    def load():
        with second.held():
            got_it.set()

    with first.held():
        waiting = threading.Thread(target=load)
        waiting.start()
        assert not got_it.wait(0.2)
    waiting.join()
    assert got_it.is_set()
    assert second.waited >= 0.2
    assert first.waited < 0.2


def test_nobody_waits_for_who_loads_elsewhere(lock, tmp_path):
    with lock("0").held(), lock("1").held():
        pass
    alone = lock("2", is_shared=False)
    with alone.held(), lock("2").held():
        assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == [
            "device-0.lock",
            "device-1.lock",
            "device-2.lock",
        ]


def is_locked(path):
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("is_cpu", [False, True])
def test_a_model_that_shares_its_device_has_it_alone_while_it_loads(vllm, monkeypatch, tmp_path, is_cpu):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    vllm(is_cpu=is_cpu)
    path, given = tmp_path / "device-3.lock", []

    def load(share, **args):
        given.append((share, args.get("enable_sleep_mode", False), path.exists() and is_locked(path)))
        raise InterruptedError

    monkeypatch.setattr(loaded_model, "_new_llm", load)
    for share, sleeps in ((1.0, False), (0.5, True)):
        how = {"adapters": (), "memory_share": share, "locks": str(tmp_path)}
        with pytest.raises(InterruptedError):
            loaded_model.VllmModel(model("m"), sleeps=sleeps, is_fresh=False, **how)
    assert given == [(1.0, False, False), (0.5, not is_cpu, not is_cpu)]
    assert not (path.exists() and is_locked(path))


def test_a_model_that_shares_its_device_has_it_alone_while_it_falls_asleep_or_wakes(lock, tmp_path):
    path, done = tmp_path / "logs" / "device-0.lock", []
    sleeper = object.__new__(loaded_model.VllmModel)
    sleeper._device = lock("0")
    sleeper._llm = SimpleNamespace(
        sleep=lambda level: done.append((level, is_locked(path))),
        wake_up=lambda: done.append(("wake", is_locked(path))),
    )
    sleeper.sleep()
    sleeper.wake()
    assert done == [(1, True), ("wake", True)]
    assert not is_locked(path)


def test_a_lock_ends_with_its_block_though_a_forked_process_has_its_file_open(lock):
    first, second = lock("0"), lock("0")
    with first.held():
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.close(writing)
            os.read(reading, 1)  # until the test is over
            os._exit(0)
    taken = threading.Thread(target=lambda: second.held().__enter__(), daemon=True)
    taken.start()
    assert eventually(lambda: not taken.is_alive())
    os.close(writing)
    os.waitpid(child, 0)


def test_a_model_too_large_for_its_share_says_so(monkeypatch, tmp_path):
    (tmp_path / "config.json").touch()
    why = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"

    class Refusing:
        def __init__(self, *_, **__):
            pass

        def send(self, message):
            pass

        def receive(self, timeout, most_bytes):
            return {"load_failed": why}

    monkeypatch.setattr(vllm_engine, "WorkerProcess", Refusing)
    for share, said in ((0.5, "each with 50% of a device's memory"), (1.0, None)):
        ref = ModelRef(name="m", provider="vllm", model=str(tmp_path))
        engine = VllmEngine(ref, EngineSettings(log_folder=tmp_path, memory_share=share))
        with pytest.raises(vllm_engine.EngineLoadFailed, match=why[:40]) as caught:
            _ = engine.identity
        assert (said in str(caught.value)) if said else ("of a device's memory" not in str(caught.value))


@pytest.fixture
def cuda(monkeypatch):
    """Two GPUs, on which models lie that are in this machine's memory."""
    placed = []

    def to(self, device):
        placed.append(device)
        return self

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: H100)
    monkeypatch.setattr(transformers.PreTrainedModel, "to", to)
    return placed


@pytest.mark.parametrize(
    ("args", "devices", "place", "device"),
    [
        ({}, (), "cuda", H100),
        ({}, (1,), "cuda:1", H100),
        ({"device": "cuda"}, (1,), "cuda:1", H100),
        ({"device": "cuda:0"}, (1,), "cuda:0", H100),
        ({"device": "cpu"}, (1,), "cpu", "cpu"),
    ],
)
def test_transformers_runs_where_it_is_to_and_names_the_kind_of_device(
    tmp_path, cuda, args, devices, place, device
):
    checkpoint = save_tiny_llama(tmp_path, seed=0)
    ref = ModelRef(name="m", provider="transformers", model=str(checkpoint), model_args=args)
    engine = TransformersEngine(ref, devices)
    assert cuda == [place]
    assert engine.identity == f"transformers {transformers.__version__} {device} float32"


def test_what_an_engine_on_a_gpu_held_is_given_back(tmp_path, cuda, monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    checkpoint = save_tiny_llama(tmp_path, seed=0)
    for args in ({"device": "cpu"}, {}):
        ref = ModelRef(name="m", provider="transformers", model=str(checkpoint), model_args=args)
        TransformersEngine(ref).close()
    assert emptied == [True]


def test_a_gpu_that_others_fill_is_no_fault_of_the_checkpoint(tmp_path, cuda, monkeypatch):
    def to(self, device):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    monkeypatch.setattr(transformers.PreTrainedModel, "to", to)
    ref = ModelRef(name="m", provider="transformers", model=str(save_tiny_llama(tmp_path, seed=0)))
    with pytest.raises(EngineDied, match="CUDA out of memory"):
        TransformersEngine(ref)
