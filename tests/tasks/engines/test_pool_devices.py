import threading

import pytest
from pool_engines import ScriptedFactory, ask, model, reasons, texts
from waiting import PATIENCE_S

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import RequestGroup


@pytest.fixture
def open_pool(tmp_path):
    pools = []

    def open_pool(factory, **options):
        pools.append(EnginePool(log_folder=tmp_path, factory=factory, **options))
        return pools[-1]

    yield open_pool
    for pool in pools:
        pool.close()


def asks(*names, **fields):
    return [RequestGroup(model=model(name, **fields), requests=ask(f"{n}")) for n, name in enumerate(names)]


def told(answered):
    """What each ask was answered, by its number; the numbers are in the order of the answers."""
    return {number: texts(answers) for number, answers in answered}


def meeting(parties):
    """A step of a script that ends only when so many engines are at it at the same time."""
    barrier = threading.Barrier(parties)
    return lambda: barrier.wait(PATIENCE_S)


def wide(size):
    return {"model_args": {"tensor_parallel_size": size}}


def test_as_many_models_as_there_are_devices_are_asked_at_the_same_time(open_pool):
    together = meeting(2)
    factory = ScriptedFactory({"a": [together], "b": [together]})
    pool = open_pool(factory, devices=[0, 1])
    assert told(pool.answers(asks("a", "b"))) == {0: ["a:0"], 1: ["b:1"]}
    assert {factory.settings[name].devices for name in "ab"} == {(0,), (1,)}


def test_without_devices_one_model_is_asked_at_a_time_in_the_callers_thread(open_pool):
    seen = []
    step = lambda: seen.append((threading.current_thread(), threading.active_count()))  # noqa: E731
    factory = ScriptedFactory({"a": [step], "b": [step]})
    before = threading.active_count()
    told(open_pool(factory, max_loaded=2).answers(asks("a", "b")))
    assert seen == [(threading.current_thread(), before)] * 2
    assert factory.settings["a"].devices == ()


def test_two_models_on_one_device_are_not_asked_at_the_same_time(open_pool):
    at_work, most = [], []

    def work():
        at_work.append(1)
        most.append(len(at_work))
        threading.Event().wait(0.01)
        at_work.pop()

    names = "abcdef"
    pool = open_pool(ScriptedFactory({name: [work] * 2 for name in names}), devices=[7, 8], max_loaded=3)
    for _ in range(2):  # all are loaded the second time
        assert len(told(pool.answers(asks(*names)))) == 6
    assert max(most) <= 2


def test_groups_of_one_model_are_answered_in_their_order(open_pool):
    pool = open_pool(ScriptedFactory(), devices=[0, 1])
    order = list(told(pool.answers(asks("a", "b", "a", "b", "a"))))
    assert [number for number in order if number % 2 == 0] == [0, 2, 4]
    assert [number for number in order if number % 2] == [1, 3]


def test_a_model_over_two_devices_runs_alone_and_gets_both(open_pool):
    alone = threading.Event()
    factory = ScriptedFactory({"wide": [alone.set]})
    pool = open_pool(factory, devices=[4, 5])
    narrow = [RequestGroup(model=model(name), requests=ask("x")) for name in "ab"]
    broad = RequestGroup(model=model("wide", **wide(2)), requests=ask("x"))
    assert len(told(pool.answers([*narrow, broad]))) == 3
    assert factory.settings["wide"].devices == (4, 5)
    assert alone.is_set()
    assert factory.diary.index("start wide") > max(factory.diary.index(f"close {name}") for name in "ab")


def test_each_device_holds_as_many_models_as_max_loaded_says(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, devices=[0, 1], max_loaded=2)
    for _ in range(3):
        told(pool.answers(asks("a", "b", "c", "d")))
    assert sorted(factory.diary) == ["start a", "start b", "start c", "start d"]
    assert sorted(factory.settings[name].devices for name in "abcd") == [(0,), (0,), (1,), (1,)]


def test_models_that_are_loaded_are_asked_first_and_rounds_in_turn_save_loads(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, max_loaded=2)
    for _ in range(3):
        assert len(told(pool.answers(asks("a", "b", "c")))) == 3
    starts = sum(entry.startswith("start") for entry in factory.diary)
    assert starts == 3 + 1 + 1  # in their own order it would be 9


def test_a_model_that_is_asked_after_the_candidates_stays_for_them(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, max_loaded=2)
    for _ in range(3):
        told(pool.answers(asks("a", "b"), later=[model("judge")]))
        told(pool.answers(asks("judge"), later=[model("judge")]))
    assert factory.diary.count("start judge") == 1


@pytest.mark.parametrize("devices", [[], [0, 1]])
def test_a_death_is_raised_when_what_was_begun_beside_it_is_answered(open_pool, devices):
    asking, finished = {}, []
    together = meeting(2 if devices else 1)

    def die():
        asking["a"] = threading.current_thread()
        together()
        raise EngineDied("a", "gone")

    def outlive():
        together()
        if devices:
            asking["a"].join(PATIENCE_S)

    pool = open_pool(ScriptedFactory({"a": [die], "b": [outlive]}), devices=devices)
    answered = pool.answers(asks("a", "b", "c", "b"))
    with pytest.raises(EngineDied, match="gone"):
        finished.extend(number for number, _ in answered)
    assert (1 in finished) == bool(devices), "what was begun before the death is answered"
    assert 3 not in finished, "nothing is begun once the death is known"
    assert len(told(pool.answers(asks("a", "b", "c", "b")))) == 4


def test_a_death_is_raised_where_nothing_is_left_but_what_outlives_it(open_pool):
    asking, together = {}, meeting(2)

    def die():
        asking["a"] = threading.current_thread()
        together()
        raise EngineDied("a", "gone")

    def outlive():
        together()
        asking["a"].join(PATIENCE_S)

    pool = open_pool(ScriptedFactory({"a": [die], "b": [outlive]}), devices=[0, 1])
    answered = pool.answers(asks("a", "b"))
    assert next(answered)[0] == 1
    with pytest.raises(EngineDied, match="gone"):
        next(answered)


def test_a_model_that_cannot_be_loaded_leaves_the_others_alone(open_pool):
    factory = ScriptedFactory(start_errors={"a": EngineLoadFailed("a", "bad")})
    pool = open_pool(factory, devices=[0, 1])
    answered = dict(pool.answers(asks("a", "b", "a", "c")))
    assert [reasons(answered[number]) for number in (0, 2)] == [["load_failed"]] * 2
    assert [texts(answered[number]) for number in (1, 3)] == [["b:1"], ["c:3"]]
    assert factory.diary.count("start a") == 1


def test_a_bug_in_a_thread_comes_to_the_caller(open_pool):
    pool = open_pool(ScriptedFactory({"a": [ZeroDivisionError()]}), devices=[0, 1])
    with pytest.raises(ZeroDivisionError):
        list(pool.answers(asks("a", "b")))


def test_whoever_stops_listening_ends_the_engines_that_are_at_work(open_pool):
    together, forever = meeting(2), threading.Event()
    factory = ScriptedFactory({"a": [together], "b": [lambda: (together(), forever.wait(PATIENCE_S))]})
    pool = open_pool(factory, devices=[0, 1])
    answered = pool.answers(asks("a", "b"))
    assert next(answered)[0] == 0
    answered.close()
    assert sorted(factory.diary[-2:]) == ["close a", "close b"]
    pool.close()
    forever.set()


def test_models_elsewhere_take_no_place_and_are_asked_beside_the_others(open_pool, monkeypatch):
    monkeypatch.setattr("winnow.tasks.engines.providers.ELSEWHERE", frozenset({"far"}))
    together = meeting(3)
    factory = ScriptedFactory({name: [together] for name in "abc"})
    pool = open_pool(factory)
    local = RequestGroup(model=model("a"), requests=ask("x"))
    remote = [RequestGroup(model=model(name, provider="far"), requests=ask("x")) for name in "bc"]
    assert told(pool.answers([*remote, local])) == {0: ["b:x"], 1: ["c:x"], 2: ["a:x"]}
    assert [load.model for load in pool.take_loads()] == ["a"]
    assert "close a" not in factory.diary
    assert all(factory.settings[name].devices == () for name in "abc")


def test_preloading_spreads_models_over_free_devices(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, devices=[0, 1])
    for name in "abc":
        pool.preload(model(name))
    assert {name: settings.devices for name, settings in factory.settings.items()} == {"a": (0,), "b": (1,)}


def test_loads_are_timed_once_each_with_their_devices(open_pool):
    pool = open_pool(ScriptedFactory(), devices=[3])
    for _ in range(2):
        told(pool.answers(asks("a", "b", "a")))
    loads = pool.take_loads()
    assert [(load.model, load.devices, load.kind) for load in loads] == [
        ("a", (3,), "load"),
        ("b", (3,), "load"),
        ("a", (3,), "load"),
    ]
    assert all(0.0 <= load.seconds < PATIENCE_S for load in loads)
    assert pool.take_loads() == []


def test_a_model_is_loading_until_its_engine_can_be_asked(open_pool):
    seen = []

    class Loading(ScriptedFactory.engine):
        @property
        def identity(self):  # asked for where somebody waits for the model to be loaded
            seen.append({name: seconds >= 0.0 for name, seconds in pool.loading.items()})
            return "loaded"

        @identity.setter
        def identity(self, _):
            pass

    factory = ScriptedFactory({"a": [lambda: seen.append(pool.loading)]})
    factory.engine = Loading
    pool = open_pool(factory)
    told(pool.answers(asks("a")))
    assert seen[:2] == [{"a": True}, {}]
    assert pool.loading == {}
