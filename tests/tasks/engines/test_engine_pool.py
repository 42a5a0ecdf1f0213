import threading

import pytest
from pool_engines import ScriptedEngine, ScriptedFactory, ask, model, reasons, texts
from waiting import PATIENCE_S

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.protocol import GenerationFailure


@pytest.fixture
def open_pool(tmp_path):
    pools = []

    def open_pool(factory, **options):
        pools.append(EnginePool(log_folder=tmp_path, factory=factory, **options))
        return pools[-1]

    yield open_pool
    for pool in pools:
        pool.close()


def test_answers_come_in_the_order_of_the_requests(open_pool):
    assert texts(open_pool(ScriptedFactory()).generate(model("a"), ask("3", "1", "2"))) == [
        "a:3",
        "a:1",
        "a:2",
    ]


def test_no_requests_start_no_engine(open_pool):
    factory = ScriptedFactory()
    assert open_pool(factory).generate(model("a"), []) == []
    assert factory.diary == []


def test_an_engine_is_closed_before_the_next_one_starts(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory)
    for name in ("a", "a", "b"):
        pool.generate(model(name), ask("x"))
    assert factory.diary == ["start a", "close a", "start b"]


def test_the_least_recently_used_engine_makes_room(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, max_loaded=2)
    for name in ("a", "b", "a", "c"):
        pool.generate(model(name), ask("x"))
    assert factory.diary == ["start a", "start b", "close b", "start c"]


def test_models_that_differ_only_in_name_share_an_engine(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory)
    for name in ("a", "b"):
        pool.generate(model(name, model="same"), ask("x"))
    assert factory.diary == ["start a"]


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "v2"},
        {"model_args": {"dtype": "float32"}},
        {"chat": True},
        {"chat_template": "{{ messages }}"},
        {"provider": "other"},
    ],
)
def test_models_that_load_differently_do_not_share_an_engine(open_pool, change):
    factory = ScriptedFactory()
    pool = open_pool(factory, max_loaded=2)
    for fields in ({}, change):
        pool.generate(model("a", **fields), ask("x"))
    assert factory.diary == ["start a", "start a"]


@pytest.mark.parametrize("error", [EngineDied("a", "gone"), EngineTimeout("a", "slow")])
def test_an_engine_that_ended_is_closed_and_the_next_call_has_a_fresh_one(open_pool, error):
    factory = ScriptedFactory({"a": [error]})
    pool = open_pool(factory)
    with pytest.raises(type(error)):
        pool.generate(model("a"), ask("x"))
    assert factory.diary == ["start a", "close a"]
    assert texts(pool.generate(model("a"), ask("x"))) == ["a:x"]


def test_restarts_are_bounded_and_then_the_model_alone_has_failed_for_good(open_pool):
    factory = ScriptedFactory({"a": [EngineDied("a", f"death {i}") for i in range(9)]})
    pool = open_pool(factory, max_restarts=2)
    for _ in range(2):
        with pytest.raises(EngineDied):
            pool.generate(model("a"), ask("x"))
    answers = pool.generate(model("a"), ask("x", "y"))
    assert reasons(answers) == ["engine_failed", "engine_failed"]
    assert answers[0].detail == "model 'a': 3 engines ended; the last one: death 2"
    assert pool.generate(model("a"), ask("z")) == answers[:1]
    assert factory.diary.count("start a") == 3
    assert texts(pool.generate(model("b"), ask("x"))) == ["b:x"]


def test_a_model_that_cannot_be_loaded_is_tried_once(open_pool):
    factory = ScriptedFactory(start_errors={"a": EngineLoadFailed("a", "no such folder")})
    pool = open_pool(factory)
    failure = GenerationFailure(reason="load_failed", detail="model 'a': no such folder")
    assert pool.generate(model("a"), ask("x", "y")) == [failure, failure]
    assert pool.generate(model("a"), ask("x")) == [failure]
    assert factory.diary == ["start a"]
    with pytest.raises(EngineLoadFailed, match="no such folder"):
        pool.identity(model("a"))


def test_a_model_whose_loading_fails_late_gives_its_place_back(open_pool):
    factory = ScriptedFactory({"a": [EngineLoadFailed("a", "bad weights")]})
    pool = open_pool(factory)
    assert reasons(pool.generate(model("a"), ask("x"))) == ["load_failed"]
    assert texts(pool.generate(model("b"), ask("x"))) == ["b:x"]
    assert factory.diary == ["start a", "close a", "start b"]


def test_a_bug_in_an_engine_is_not_hidden(open_pool):
    factory = ScriptedFactory({"a": [ZeroDivisionError()]})
    pool = open_pool(factory)
    with pytest.raises(ZeroDivisionError):
        pool.generate(model("a"), ask("x"))
    assert factory.diary == ["start a", "close a"]


def test_the_identity_outlives_the_engine(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory)
    for name in ("a", "b"):
        assert pool.identity(model(name)) == f"scripted {name}"
    assert pool.identity(model("a")) == "scripted a"
    assert factory.diary == ["start a", "close a", "start b"]


def test_preloading_takes_a_free_place_only(open_pool):
    factory = ScriptedFactory()
    pool = open_pool(factory, max_loaded=1)
    pool.preload(model("a"))
    pool.preload(model("b"))
    assert texts(pool.generate(model("a"), ask("x"))) == ["a:x"]
    assert factory.diary == ["start a"]


def test_trouble_while_preloading_shows_when_the_model_is_asked(open_pool):
    pool = open_pool(ScriptedFactory(start_errors={"a": EngineLoadFailed("a", "no such folder")}))
    pool.preload(model("a"))
    assert reasons(pool.generate(model("a"), ask("x"))) == ["load_failed"]


def test_leaving_the_pool_closes_every_engine_and_starts_no_more(tmp_path):
    factory = ScriptedFactory()
    with EnginePool(log_folder=tmp_path, factory=factory, max_loaded=2) as pool:
        for name in ("a", "b"):
            pool.generate(model(name), ask("x"))
    assert factory.diary == ["start a", "start b", "close a", "close b"]
    with pytest.raises(RuntimeError, match="closed"):
        pool.generate(model("a"), ask("x"))


def test_an_engine_at_work_is_not_closed_for_another_model(open_pool):
    working, finish = threading.Event(), threading.Event()

    def work():
        working.set()
        assert finish.wait(PATIENCE_S)

    factory = ScriptedFactory({"a": [work]})
    pool = open_pool(factory)
    threads = [threading.Thread(target=pool.generate, args=(model(name), ask("x"))) for name in ("a", "b")]
    threads[0].start()
    assert working.wait(PATIENCE_S)
    threads[1].start()
    threads[1].join(0.1)  # long enough for a wrong pool to start b
    assert factory.diary == ["start a"]
    finish.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert factory.diary == ["start a", "close a", "start b"]


@pytest.mark.parametrize("options", [{"max_loaded": 0}, {"max_restarts": -1}, {"most_asleep": -1}])
def test_impossible_limits_are_refused_with_their_value(tmp_path, options):
    with pytest.raises(ValueError, match=str(*options.values())):
        EnginePool(log_folder=tmp_path, **options)


def test_an_unknown_provider_is_a_failure_that_names_the_known_ones(tmp_path):
    with EnginePool(log_folder=tmp_path) as pool:
        (failure,) = pool.generate(model("a"), ask("x"))
    assert failure.reason == "load_failed"
    assert (
        "'scripted'; choose one of command, http, litellm, openai, python, recorded, transformers, vllm"
        in failure.detail
    )


class CountingWrong(ScriptedEngine):
    """Answers one request more or fewer than it was asked, once."""

    def generate(self, requests):
        answers = super().generate(requests)
        return (answers + answers[:1], answers[:-1], answers)[min(2, len(self._diary) // 2)]


def test_an_engine_that_answers_too_many_or_too_few_is_started_again(open_pool):
    diary = []

    def factory(model, settings):
        diary.append("start")
        return CountingWrong(model, [], diary)

    pool = open_pool(factory, max_restarts=2)
    for count in (3, 1):
        with pytest.raises(EngineDied, match=f"answered 2 requests with {count} texts"):
            pool.generate(model("a"), ask("x", "y"))
    assert texts(pool.generate(model("a"), ask("x", "y"))) == ["a:x", "a:y"]
