"""Time in which models load and no engine is at work, which rates leave out."""

from contextlib import suppress

import pytest

from winnow.tasks.engines.pool.load_times import LoadTimes
from winnow.tasks.engines.pool.slots import SlotTable


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_loading_counts_while_no_engine_answers(clock):
    times = LoadTimes(SlotTable(2, ()))
    with times.loading("one"):
        clock[0] += 5.0
        assert times.stalled == 5.0
        with times.loading("two"):
            clock[0] += 2.0  # two that load at once are one wait
        with times.answering():
            clock[0] += 30.0
            with times.answering():
                clock[0] += 30.0
            clock[0] += 30.0
        clock[0] += 1.0
    clock[0] += 100.0
    with times.answering():
        clock[0] += 100.0
        with times.loading("three"):
            clock[0] += 100.0
    assert times.stalled == 8.0


def test_a_load_that_fails_has_ended(clock):
    times = LoadTimes(SlotTable(1, ()))
    with suppress(RuntimeError), times.loading("one"):
        clock[0] += 3.0
        raise RuntimeError
    clock[0] += 50.0
    assert (times.stalled, times.under_way) == (3.0, {})
