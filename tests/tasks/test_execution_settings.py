"""What a spec may say about where engines run."""

from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from winnow.tasks.campaign.placement import placed
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.spec.sections.execution import ExecutionSpec


class Started(Exception):
    """What an engine would have been started with."""


def placement_of(monkeypatch, **execution):
    """Where engines are placed, in a cluster that starts none."""

    @contextmanager
    def cluster(address, gpus, engines):
        yield lambda model, settings: started("cluster", settings)

    def started(where, settings):
        raise Started(where, settings.max_connections)

    monkeypatch.setattr("winnow.tasks.engines.ray.cluster.ray_engines", cluster)
    monkeypatch.setattr(
        "winnow.tasks.campaign.placement.start_engine", lambda _, settings: started("here", settings)
    )
    return placed(ExecutionSpec(**execution))


def where_started(placement, provider, tmp_path):
    model = ModelRef(name="m", provider=provider, model="m", model_args={"tensor_parallel_size": 2})
    with pytest.raises(Started) as started:
        placement.factory(model, EngineSettings(log_folder=tmp_path))
    return (*started.value.args, placement.width(model))


def test_engines_run_on_this_machine_unless_a_cluster_is_named(monkeypatch, tmp_path):
    with placement_of(monkeypatch, devices=[2, 5], max_loaded=3, max_connections=7) as placement:
        assert (list(placement.devices), placement.max_loaded) == ([2, 5], 3)
        assert where_started(placement, "vllm", tmp_path) == ("here", 7, 2)


def test_a_cluster_is_asked_for_as_many_engines_at_once_as_may_be_loaded(monkeypatch, tmp_path):
    with placement_of(monkeypatch, cluster="ray", max_loaded=3, max_connections=7) as placement:
        assert (len(placement.devices), placement.max_loaded) == (3, 1)
        assert where_started(placement, "vllm", tmp_path) == ("cluster", 7, 1)
        assert where_started(placement, "openai", tmp_path) == ("here", 7, 0)


@pytest.mark.parametrize("key", [{"devices": [0]}, {"sleep": True}])
def test_devices_of_this_machine_are_none_of_a_cluster(key):
    with pytest.raises(ValidationError, match="remove devices and sleep"):
        ExecutionSpec(cluster="ray", **key)


def test_a_ray_cluster_is_looked_for_where_this_machine_belongs_to_one():
    execution = ExecutionSpec(cluster="ray")
    assert (execution.ray_address, execution.ray_gpus) == ("auto", "auto")
    assert ExecutionSpec.model_validate(execution.model_dump(mode="json")) == execution


@pytest.mark.parametrize("gpus", ["auto", 0, 0.25, 1, 8])
def test_an_engine_takes_a_part_of_a_gpu_or_whole_ones(gpus):
    assert ExecutionSpec(cluster="ray", ray_gpus=gpus).ray_gpus == gpus


@pytest.mark.parametrize("gpus", [-1, 1.5, float("nan"), "many"])
def test_other_numbers_of_gpus_are_refused(gpus):
    with pytest.raises(ValidationError, match="ray_gpus"):
        ExecutionSpec(cluster="ray", ray_gpus=gpus)


@pytest.mark.parametrize("key", [{"ray_address": "local"}, {"ray_gpus": 1}])
def test_settings_of_a_cluster_without_a_cluster_are_refused(key):
    with pytest.raises(ValidationError, match="ray_address and ray_gpus need cluster: ray; add cluster: ray"):
        ExecutionSpec(**key)
