"""Devices follow the race: a model is loaded again on those that would do nothing, once that is worth it."""

import itertools
import threading
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from unittest.mock import ANY

import pytest
from pool_engines import ScriptedEngine, ScriptedFactory, ask, model, texts
from waiting import PATIENCE_S, until

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.pool import pool as pool_module
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import Replicas, RequestGroup


class Joining(ScriptedEngine):
    joins = True


class JoiningFactory(ScriptedFactory):
    engine = Joining


class OneLoad(ScriptedFactory):
    """A factory whose device has memory for one engine of a model, and for no second one."""

    def __call__(self, model, settings):
        if f"start {model.name}" in self.diary:
            self.diary.append(f"fail {model.name}")
            raise EngineLoadFailed(model.name, "no memory left")
        return super().__call__(model, settings)


@pytest.fixture
def pool_of(tmp_path, monkeypatch):
    """Pools for which so many seconds pass between any two looks at what engines do."""
    opened = []

    def pool_of(factory, seconds=10.0, **options):
        clock = itertools.count(0.0, seconds).__next__
        monkeypatch.setattr(pool_module, "Replicas", partial(Replicas, clock=clock))
        opened.append(EnginePool(log_folder=tmp_path, factory=factory, **{"devices": [0, 1], **options}))
        return opened[-1]

    yield pool_of
    for pool in opened:
        pool.close()


def groups(*names):
    return [RequestGroup(model=model(name), requests=ask(f"{n}")) for n, name in enumerate(names)]


def told(answered):
    return {number: texts(answers) for number, answers in answered}


def together(parties=2):
    """A step of a script that ends only when so many engines are at it at the same time."""
    return threading.Barrier(parties, timeout=PATIENCE_S).wait


def slow(n):
    """Steps that take long enough for a look at what else could begin meanwhile."""
    return [lambda: threading.Event().wait(0.02)] * n


def loaded(pool):
    return [(each.model, each.devices) for each in pool.take_loads()]


def test_a_model_that_is_left_alone_is_loaded_again_and_both_engines_are_asked_together(pool_of):
    meet = together()
    pool = pool_of(ScriptedFactory({"a": [None, None, meet, meet, meet, meet]}))
    asked = groups(*"aaaaaa")
    assert told(pool.answers(asked)) == {n: [f"a:{n}"] for n in range(6)}
    assert loaded(pool) == [("a", (0,)), ("a", (1,))]


def test_nothing_is_loaded_again_for_work_that_is_over_sooner_than_its_load(pool_of):
    factory = ScriptedFactory()
    pool = pool_of(factory, seconds=0.1)  # a load counts a second at least
    assert len(told(pool.answers(groups(*"aaaaaa")))) == 6
    assert factory.diary == ["start a"]


def test_what_engines_were_short_of_adds_up_over_rounds(pool_of):
    factory = ScriptedFactory({"a": slow(48)})
    pool = pool_of(factory, seconds=0.1)
    told(pool.answers(groups(*"aaaaaa")))
    assert factory.diary == ["start a"]
    for _ in range(7):
        told(pool.answers(groups(*"aaaaaa")))
    assert factory.diary[:2] == ["start a", "start a"]


def test_models_that_are_asked_or_will_be_keep_their_places(pool_of):
    factory = ScriptedFactory({"a": slow(12)})
    pool = pool_of(factory)
    told(pool.answers(groups("b")))
    for _ in range(3):
        told(pool.answers(groups(*"aaaa"), later=[model("b")]))
    assert factory.diary == ["start b", "start a"]


def test_an_engine_of_a_model_that_is_out_makes_room_and_a_replica_does_before_any_other(pool_of):
    factory = ScriptedFactory({"a": slow(12)})
    pool = pool_of(factory)
    told(pool.answers(groups("a", "b")))
    told(pool.answers(groups(*"aaaaaaaa")))  # b is out
    assert factory.diary == ["start a", "start b", "close b", "start a"]
    told(pool.answers(groups("a", "c")))
    assert factory.diary[4:] == ["close a", "start c"]
    told(pool.answers(groups("a")))
    assert factory.diary[6:] == []  # what went was the replica


def test_groups_that_join_go_to_the_engine_with_the_fewest(pool_of):
    ends = threading.Event()
    pool = pool_of(JoiningFactory({"a": [lambda: ends.wait(PATIENCE_S)] * 10_000}))
    with closing(pool.stream()) as stream:
        running = stream._scheduler._running

        def all_begun():
            assert not list(stream.answered())
            stream.begin()
            return not stream._scheduler._waiting

        def two_at_work():
            if all_begun():
                stream.add(groups("a"))
            return sum(map(pool._slots.may_be_joined, running)) == 2

        until(two_at_work)
        until(all_begun)
        stream.add(groups(*"a" * (max(running.values()) - min(running.values()) + 4)))
        until(all_begun)
        first, second = running.values()
        assert first == second
        ends.set()
        assert len(list(stream.finish_begun())) == first + second


def test_a_replica_that_cannot_be_loaded_leaves_the_work_to_the_first_engine_and_is_not_tried_again(pool_of):
    factory = OneLoad({"a": slow(18)})
    pool = pool_of(factory)
    for _ in range(3):
        assert told(pool.answers(groups(*"aaaaaa"))) == {n: [f"a:{n}"] for n in range(6)}
    assert factory.diary == ["start a", "fail a"]


def test_a_replica_that_dies_is_an_engine_of_the_model_that_died(pool_of):
    meet = together()

    def dies():
        meet()
        raise EngineDied("a", "killed by signal 9")

    pool = pool_of(ScriptedFactory({"a": [None, None, dies, meet]}), max_restarts=1)
    answers = pool.answers(groups(*"aaaa"))
    assert [texts(next(answers)[1]) for _ in range(3)] == [["a:0"], ["a:1"], ANY]
    with pytest.raises(EngineDied, match="signal 9"):  # once what was begun beside it is answered
        next(answers)
    assert len(told(pool.answers(groups("a")))) == 1


def test_a_model_over_both_devices_has_no_replica(pool_of):
    factory = ScriptedFactory()
    pool = pool_of(factory)
    both = model("a", model_args={"tensor_parallel_size": 2})
    asked = [RequestGroup(model=both, requests=ask(f"{n}")) for n in range(4)]
    assert len(told(pool.answers(asked))) == 4
    assert factory.diary == ["start a"]


def test_each_further_engine_has_to_be_worth_its_load_again():
    now = [0.0]
    slots = SimpleNamespace(keys=lambda *, placed: {"a", "a#1"}, seconds={"a": 8.0})
    replicas = Replicas(slots, clock=lambda: now[0])
    replicas.watch(["a"])
    now[0] = 7.0
    replicas.watch(["a"])
    assert replicas.due("a") is None
    now[0] = 8.0
    replicas.watch([])
    assert replicas.due("a") == "a#1"
    replicas.begin("a")
    assert replicas.due("a") is None
    assert replicas.engines("a") == ["a", "a#1"]
    now[0] = 100.0
    replicas.watch(["a"])  # it was not short meanwhile
    assert replicas.due("a") is None
    now[0] = 108.0
    replicas.watch([])
    assert replicas.due("a") == "a#2"
    replicas.give_up("a")
    assert replicas.due("a") is None
