import logging

import pytest
from pool_engines import ScriptedFactory, SleepyEngine, ask, model, texts

from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.pool.pool import EnginePool


class SleepyFactory(ScriptedFactory):
    engine = SleepyEngine


class Sleepless(SleepyEngine):
    can_sleep = False


class Restless(SleepyEngine):
    trouble = EngineDied("a", "it had a nightmare")


@pytest.fixture
def open_pool(tmp_path):
    pools = []

    def open_pool(factory, **options):
        pools.append(EnginePool(log_folder=tmp_path, factory=factory, **{"most_asleep": 2, **options}))
        return pools[-1]

    yield open_pool
    for pool in pools:
        pool.close()


def asked(pool, names):
    for name in names:
        assert texts(pool.generate(model(name), ask("x"))) == [f"{name}:x"]


def test_a_model_that_makes_room_sleeps_and_wakes_when_it_is_asked(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory)
    asked(pool, "abba")
    assert factory.diary == ["start a", "sleep a", "start b", "sleep b", "wake a"]
    assert factory.settings["a"].sleeps
    assert [(load.model, load.kind) for load in pool.take_loads()] == [
        ("a", "load"),
        ("b", "load"),
        ("a", "wake"),
    ]


def test_the_one_that_sleeps_longest_is_closed_when_too_many_sleep(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory)
    asked(pool, "abcd")
    assert factory.diary[-3:] == ["sleep c", "close a", "start d"]
    asked(pool, "b")
    assert factory.diary[-2:] == ["sleep d", "wake b"]


def test_a_sleeper_wakes_on_the_device_that_it_fell_asleep_on(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory, devices=[0, 1])
    asked(pool, "abcab")
    devices = {load.model: load.devices for load in pool.take_loads()}
    assert devices == {"a": (0,), "b": (1,), "c": (0,)}
    assert factory.diary == ["start a", "start b", "sleep a", "start c", "sleep c", "wake a"]


def test_leaving_the_pool_closes_sleepers_too(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory)
    asked(pool, "ab")
    pool.close()
    assert sorted(factory.diary[-2:]) == ["close a", "close b"]


def test_engines_sleep_only_where_they_are_told_to(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory, most_asleep=0)
    asked(pool, "ab")
    assert factory.diary == ["start a", "close a", "start b"]
    assert not factory.settings["a"].sleeps


def test_a_model_that_cannot_sleep_here_is_closed_and_the_reason_is_logged_once(open_pool, caplog):
    factory = SleepyFactory()
    factory.engine = Sleepless
    with caplog.at_level(logging.WARNING):
        asked(open_pool(factory), "abc")
    assert factory.diary == ["start a", "close a", "start b", "close b", "start c"]
    assert [record.message for record in caplog.records] == [
        "models cannot sleep on this device: evicted models are closed"
    ]


def test_a_model_that_fails_to_fall_asleep_is_closed(open_pool, caplog):
    factory = SleepyFactory()
    factory.engine = Restless
    asked(open_pool(factory), "ab")
    assert factory.diary == ["start a", "close a", "start b"]
    assert "it had a nightmare" in caplog.text


def test_a_model_that_is_only_begun_to_load_does_not_sleep(open_pool):
    factory = SleepyFactory()
    pool = open_pool(factory)
    pool.preload(model("a"))
    asked(pool, "b")
    assert factory.diary == ["start a", "close a", "start b"]
