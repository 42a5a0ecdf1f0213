"""Engines in Ray actors: what they answer, how they fail, and that nothing is lost when they or we end."""

import dataclasses
import os
import socket
import sys
import time
from types import SimpleNamespace

import campaign_processes as processes
import psutil
import pytest
from plugins_on_disk import write_package
from ray_clusters import (
    AGENTS,
    IN_TURN,
    actors,
    alive,
    on_ray,
    ray_cluster,
    resume_in,
    title,
    tokens,
    vllm_of,
)
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S, until

from winnow.tasks.engines.errors import ClusterUnavailable, EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.engines.ray import cluster as joining
from winnow.tasks.engines.ray.cluster import ray_engines
from winnow.tasks.plugins.extras import ExtraMissing

LIGHT = """
import hashlib
import time

from winnow.tasks.engines.protocol import Completion


class Engine:
    identity = "light 1"

    def __init__(self, name):
        self.name = name

    def generate(self, requests):
        time.sleep(0.3)
        return list(map(self.answer, requests))

    def answer(self, request):
        digest = hashlib.sha256(f"{self.name} {request.prompt} {request.seed}".encode()).digest()
        text = "".join("aeioustrn"[byte % 9] for byte in digest[:6])
        return Completion(text=text, finish_reason="stop", input_tokens=1, output_tokens=6, seconds=0.05)

    def close(self):
        pass


def start(model, settings):
    return Engine(model.name)
"""
"""An engine without a model, which is slow enough to be killed at work."""


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """A folder with a package that has this provider: actors of others spend seconds on imports."""
    folder = tmp_path_factory.mktemp("light")
    write_package(folder, "light", "light_engine", LIGHT, "[winnow.engines]\nlight = light_engine:start\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


@pytest.fixture(scope="module")
def cluster(light):
    with ray_cluster(light) as address:
        yield address


@pytest.fixture(autouse=True)
def _no_actor_of_earlier_tests():
    # On a busy machine Ray has left an actor running that it was told to kill, until its driver ended.
    for actor in actors():
        actor.kill()
    until(lambda: not actors())


@pytest.fixture(scope="module")
def start(cluster):
    """Starts an engine in the cluster, which this process is in."""
    with ray_engines(cluster, "auto", engines=2) as factory:
        yield factory


@pytest.fixture(scope="module")
def forks(prefect_api):
    return processes.fork_server()


@pytest.fixture(scope="module")
def plain(forks, light, tmp_path_factory):
    """The history of the campaign when its engines run in its own process."""
    folder = tmp_path_factory.mktemp("plain")
    spec = processes.write_campaign(folder, provider="light")
    process = run(forks, folder, processes.store(spec), found_in(light))
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    return processes.history(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = save_tiny_llama(tmp_path_factory.mktemp("models") / "tiny", seed=1)
    return ModelRef(name="tiny", provider="transformers", model=str(folder))


@pytest.fixture
def settings(tmp_path):
    return EngineSettings(log_folder=tmp_path / "logs", load_timeout=PATIENCE_S, batch_timeout=20.0)


def requests(count: int) -> list[Request]:
    sampling = Sampling(temperature=0.9, max_tokens=8)
    return [Request(prompt=f"{i} and", sampling=sampling, seed=i) for i in range(count)]


def texts(answers):
    return [answer.text for answer in answers]


def run(forks, folder, storage, environment):
    given = (str(folder), storage, "survivor", environment, os.environ["PREFECT_API_URL"])
    process = forks.Process(target=resume_in, args=given)
    process.start()
    return process


def found_in(folder):
    return {"PYTHONPATH": str(folder)}


def test_without_a_cluster_the_remedy_is_told(forks, tmp_path):
    # The first test of all: later ones have a cluster on this machine, and it would be found.
    told = tmp_path / "told"
    process = forks.Process(target=write_down_error_of, args=("auto", str(told)))
    process.start()
    process.join(PATIENCE_S)
    assert told.read_text().startswith("there is no Ray cluster at 'auto' (ConnectionError: ")
    assert "start one with `ray start --head`" in told.read_text()


def write_down_error_of(address, path):
    try:
        with ray_engines(address, "auto", engines=1):
            pass
    except ClusterUnavailable as error:
        with open(path, "w") as file:
            file.write(str(error))


def test_an_actor_answers_as_the_engine_itself_does_until_it_takes_too_long(start, model, settings):
    engine, itself = start(model, settings), start_engine(model, settings)
    bad = Request(prompt="", sampling=Sampling(), seed=0)
    answers = engine.generate([*requests(5), bad])
    assert texts(answers[:5]) == texts(itself.generate(requests(5)))
    assert answers[5].reason == "empty_prompt"
    assert engine.identity == itself.identity
    assert (settings.log_folder / "tiny.log").exists()
    [actor] = actors()
    actor.suspend()
    with pytest.raises(EngineTimeout, match=r"the Ray actor did not answer 3 requests within 20.0 s"):
        engine.generate(requests(3))
    engine.close()
    engine.close()
    until(lambda: not actors())


def test_a_model_that_cannot_be_loaded_says_why_in_the_words_of_its_provider(start, settings, tmp_path):
    engine = start(ModelRef(name="gone", provider="vllm", model=str(tmp_path)), settings)
    with pytest.raises(EngineLoadFailed, match=r"'gone': the folder .* holds no config.json"):
        engine.generate(requests(1))
    engine.close()


def test_an_actor_that_is_killed_is_an_engine_that_died_and_takes_its_vllm_along(start, model, settings):
    engine = start(dataclasses.replace(model, provider="vllm"), settings)
    [(actor, vllm)] = until(lambda: [(actor, each) for actor in actors() for each in vllm_of(actor)])
    actor.kill()
    with pytest.raises(EngineDied, match="the Ray actor has ended: "):
        engine.generate(requests(1))
    until(lambda: not alive(vllm))
    engine.close()


def test_an_actor_does_not_outlive_the_process_that_wanted_it(forks, cluster, model, settings):
    process = forks.Process(target=load_and_wait, args=(cluster, model, settings, tokens()))
    process.start()
    until(actors)
    process.kill()
    until(lambda: not actors())


def load_and_wait(address, model, settings, environment):
    os.environ.update(environment)
    with ray_engines(address, "auto", engines=1) as factory:
        assert factory(model, settings).identity
        time.sleep(600.0)


def test_a_model_for_which_no_machine_has_room_is_late(cluster, start, model, settings):
    with ray_engines(cluster, 2.0, engines=2) as on_gpus:
        engine = on_gpus(model, dataclasses.replace(settings, load_timeout=0.5))
    with pytest.raises(EngineTimeout, match="no machine of the Ray cluster had 1 CPU and 2 GPUs free"):
        engine.generate(requests(1))
    engine.close()
    assert not actors()


def test_a_cluster_whose_head_is_gone_is_waited_for_and_then_told_of_with_the_remedy(
    monkeypatch, start, model, settings
):
    looked = []
    monkeypatch.setattr(joining, "AWAY_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        head = f"127.0.0.1:{listening.getsockname()[1]}"
        monkeypatch.setattr(joining, "_head", lambda address: head)
        joining.require_head("auto")
    monkeypatch.setattr(joining, "_answers", lambda head: looked.append(head))
    gone = r"the head of the Ray cluster, 127.0.0.1:\d+, does not .* stored results are safe: start one"
    with pytest.raises(ClusterUnavailable, match=gone):
        start(model, settings)
    assert len(looked) == 2


def test_a_cluster_that_goes_while_a_model_loads_is_missed_long_before_the_model_is_late(
    cluster, model, settings, monkeypatch
):
    """Ray says nothing then of what was asked of it."""
    monkeypatch.setattr("winnow.tasks.engines.ray.engine.LOOK_EVERY_S", 0.1)
    with ray_engines(cluster, 2.0, engines=2) as on_gpus:  # for which no machine has room
        engine = on_gpus(model, settings)
        monkeypatch.setattr(joining, "AWAY_S", 0.2)
        monkeypatch.setattr(joining, "_answers", lambda head: False)
        with pytest.raises(ClusterUnavailable, match="does not answer; stored results are"):
            engine.generate(requests(1))
        engine.close()


def test_ray_is_told_how_patient_it_is_when_a_cluster_is_joined_which_is_when_it_reads_that(monkeypatch):
    """Not when it is imported: it then ended the process a minute after the head, in words of its own."""
    told, name = [], "RAY_gcs_rpc_server_reconnect_timeout_s"
    monkeypatch.delenv(name, raising=False)
    fake = SimpleNamespace(init=lambda **_: told.append(os.environ[name]), shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setattr(joining, "_job", lambda: None)
    with joining._cluster("127.0.0.1:1"):
        assert name not in os.environ
    assert told == [str(joining.RAYS_PATIENCE_S)]


def test_the_head_is_where_ray_joined_it(cluster, start):
    assert joining._head(cluster) == cluster
    assert joining._head("ray://there:10001") == "there:10001"
    assert joining._answers(cluster)
    assert not joining._answers("127.0.0.1:1")


@pytest.mark.parametrize(
    ("provider", "model_args", "found", "gpus"),
    [
        ("vllm", {"tensor_parallel_size": 4}, 8.0, 4.0),
        ("vllm", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, 8.0, 4.0),
        ("vllm", {"tensor_parallel_size": 4}, 0.0, 0.0),
        ("transformers", {}, 8.0, 1.0),
        ("transformers", {"device": "cpu"}, 8.0, 0.0),
    ],
)
def test_an_engine_takes_the_gpus_that_its_model_is_spread_over(
    monkeypatch, provider, model_args, found, gpus
):
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 8.0, "GPU": found})
    model = ModelRef(name="m", provider=provider, model="m", model_args=model_args)
    assert joining._gpus(model) == gpus


@pytest.mark.parametrize(("gpus", "share"), [(0.25, 0.25), (1.0, 1.0), (4.0, 1.0), (0.0, 1.0)])
def test_an_engine_on_a_part_of_a_gpu_has_that_part_of_its_memory(tmp_path, gpus, share):
    from winnow.tasks.engines.ray.engine import settings_there

    given = EngineSettings(log_folder=tmp_path, devices=(3,))
    there = settings_there(given, gpus)
    assert (there.memory_share, there.devices) == (share, ())


def test_without_ray_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ExtraMissing, match=r"pip install 'winnow-llm\[ray\]'"),
        ray_engines("auto", "auto", engines=1),
    ):
        pass


def test_an_actor_killed_in_the_middle_of_a_campaign_is_replaced_and_nothing_is_lost(
    forks, cluster, light, plain, tmp_path
):
    storage = processes.store(on_ray(processes.write_campaign(tmp_path, provider="light"), cluster))
    process = run(forks, tmp_path, storage, tokens() | found_in(light))
    until(lambda: processes.rows(tmp_path, "SELECT 1 FROM generations"), every_s=0.02)
    until(lambda: len(actors()) == 2, every_s=0.02)  # the other model may be loaded later
    first = actors()
    for actor in first:
        actor.suspend()
    for actor in first:
        actor.kill()
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    assert len(first) == 2
    assert processes.history(tmp_path) == plain


def test_a_killed_campaign_leaves_no_engine_behind_and_goes_on_in_another_cluster(
    forks, cluster, light, plain, tmp_path
):
    spec = on_ray(processes.write_campaign(tmp_path, provider="light"), "local")
    process = run(forks, tmp_path, processes.store(spec), IN_TURN | found_in(light))
    until(lambda: processes.rows(tmp_path, "SELECT 1 FROM generations"), every_s=0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    assert set(actors()) < set(children)
    agents = [each for each in children if title(each).startswith(AGENTS)]
    process.kill()
    process.join()
    assert not processes.has_ended(tmp_path)
    until(lambda: not any(alive(each) for each in children if each not in agents))
    spec.write_text(spec.read_text().replace('"local"', f'"{cluster}"'))
    again = run(forks, tmp_path, processes.store(spec), tokens() | found_in(light))
    again.join(PATIENCE_S)
    assert again.exitcode == 0
    assert processes.history(tmp_path) == plain
