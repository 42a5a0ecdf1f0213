"""As a library, Winnow plans on one thread of BLAS, and leaves the program's own number as it was."""

from threading import Event, Thread

import pytest
import threadpoolctl
from threadpoolctl import ThreadpoolController, threadpool_limits

import winnow
from winnow.algorithms.champion.selector import Champion
from winnow.tasks.campaign.blas_threads import VARIABLE, on_one_thread


def threads():
    return {each["num_threads"] for each in ThreadpoolController().select(internal_api="openblas").info()}


@pytest.fixture
def two(monkeypatch):
    """A process of two threads, as that of a program that never called the command line."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with threadpool_limits(2, "blas"):
        yield


@pytest.mark.parametrize("storage", [None, "winnow.db"])
def test_a_selector_plans_on_one_thread_and_scores_have_those_of_the_program(
    two, monkeypatch, tmp_path, storage
):
    found = {"ask": [], "tell": [], "score": []}

    def watched(name):
        method = getattr(Champion, name)

        def call(self, *arguments):
            found[name].append(threads())
            return method(self, *arguments)

        monkeypatch.setattr(Champion, name, call)

    def score(candidate, example):
        found["score"].append(threads())
        return float(candidate == "a")

    watched("ask")
    watched("tell")
    storage = storage and f"sqlite:///{tmp_path}/{storage}"
    winnow.select(score, ["a", "b"], list(range(20)), batch_size=4, storage=storage)
    expected = {"ask": {1}, "tell": {1}, "score": {2}}
    assert {name: set().union(*each) for name, each in found.items()} == expected
    assert threads() == {2}


def test_where_the_process_has_one_thread_nothing_is_looked_for(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    looked = []
    monkeypatch.setattr(threadpoolctl, "get_cached_controller", lambda: looked.append(None))
    assert on_one_thread(lambda: "planned")() == "planned"
    assert looked == []


def test_two_campaigns_at_once_leave_the_number_as_it_was(two):
    is_inside, may_leave = Event(), Event()

    def plan():
        is_inside.set()
        assert may_leave.wait(60)

    other = Thread(target=on_one_thread(plan))

    def first():
        other.start()
        assert is_inside.wait(60)
        return threads()

    assert on_one_thread(first)() == {1}
    may_leave.set()
    other.join()
    assert threads() == {2}
