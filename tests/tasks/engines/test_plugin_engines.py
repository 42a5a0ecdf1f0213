"""Engines of plug-ins: side by side where they need no device, and each answer as it comes."""

import threading
from contextlib import closing

import pytest
from waiting import PATIENCE_S

from winnow.algorithms.state import plugin_registry
from winnow.algorithms.state.plugin_registry import Registered, register
from winnow.tasks.engines.external.plugin import PluginEngine
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import RequestGroup
from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import GROUP, seats_wanted
from winnow.tasks.plugins.entry_points import PluginFailed


def text(said):
    return Completion(text=said, finish_reason="stop", input_tokens=0, output_tokens=0, seconds=0.0)


class Plain:
    """Answers once all engines of the test are asked."""

    identity = "plain"
    together = threading.Barrier(1)

    def __init__(self, model, settings):
        pass

    def generate(self, requests):
        self.together.wait(PATIENCE_S)
        return [text(request.prompt) for request in requests]

    def close(self):
        pass


class Elsewhere(Plain):
    devices = 0
    together = threading.Barrier(3)


class OneByOne(Elsewhere):
    def generate_each(self, requests, came):
        answers = [text(request.prompt) for request in requests]
        for place in reversed(range(len(answers))):
            came(place, answers[place])
        return answers


class Odd(Elsewhere):
    def generate_each(self, requests, came):
        came(0, "no answer")


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(plugin_registry, "_registered", {})
    for engine in (Plain, Elsewhere, OneByOne, Odd):
        register(Registered(engine.__name__, GROUP, engine, value=f"here:{engine.__name__}", source=""))


def ask(*prompts):
    return [Request(prompt=each, sampling=Sampling(), seed=0) for each in prompts]


def model(provider, name="m"):
    return ModelRef(name=name, provider=provider, model=f"x/{name}")


def test_what_needs_no_device_runs_side_by_side(tmp_path):
    assert [seats_wanted(model(each)) for each in ("Plain", "Elsewhere")] == [1, 0]
    pool = EnginePool(log_folder=tmp_path, width=seats_wanted)
    groups = [RequestGroup(model=model("Elsewhere", name), requests=ask(name)) for name in "abc"]
    with closing(pool), closing(pool.answers(groups)) as answered:
        found = {number: [each.text for each in answers] for number, answers in answered}
    assert found == {0: ["a"], 1: ["b"], 2: ["c"]}


def test_answers_are_told_as_they_come():
    engine = PluginEngine(plugin_registry.plugins(GROUP)["OneByOne"], model("OneByOne"), None)
    came = []
    found = engine.generate_each(ask("a", "b"), lambda place, answer: came.append((place, answer.text)))
    assert came == [(1, "b"), (0, "a")]
    assert [each.text for each in found] == ["a", "b"]


def test_an_engine_without_the_method_tells_them_together():
    engine = PluginEngine(plugin_registry.plugins(GROUP)["Plain"], model("Plain"), None)
    came = []
    assert [each.text for each in engine.generate_each(ask("a"), lambda *told: came.append(told))] == ["a"]
    assert not came


def test_what_is_told_is_checked():
    engine = PluginEngine(plugin_registry.plugins(GROUP)["Odd"], model("Odd"), None)
    with pytest.raises(PluginFailed, match="generate returns Completions and GenerationFailures, got str"):
        engine.generate_each(ask("a"), lambda *told: None)
