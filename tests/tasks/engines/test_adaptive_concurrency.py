import time

import anyio
import pytest

from winnow.tasks.engines.openai.server_calls import FIRST_WIDTH, AdaptiveConcurrency


def in_loop(function, *arguments):
    return anyio.run(function, *arguments)


async def widths_after(places, outcomes):
    """Send a queue of requests with these outcomes, True for an answer; return the width after each."""
    widths = []

    async def one(is_answered):
        async with places.turn() as cuts:
            await anyio.sleep(0)
            places.widen() if is_answered else places.narrow(cuts)
            widths.append(places.width)

    async with anyio.create_task_group() as tasks:
        for is_answered in outcomes:
            tasks.start_soon(one, is_answered)
    return widths


class Clock:
    """Seconds that pass as a test says."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def widths_at(server, answers, *, largest=64, places=None):
    """The width after each answer of a server that gives so many a second when so many are sent at once."""
    clock = Clock()
    concurrency = AdaptiveConcurrency(largest, clock)
    if places is not None:
        concurrency.begin_at(places)
    widths, waiting = [], answers

    async def one():
        async with concurrency.turn():
            await anyio.sleep(0)
            clock.now += 1.0 / server(concurrency.width)
            concurrency.widen()
            widths.append(concurrency.width)

    async with anyio.create_task_group() as tasks:
        for _ in range(waiting):
            tasks.start_soon(one)
    return widths


def test_it_doubles_as_long_as_that_brings_more_answers_a_second():
    async def widths():
        return await widths_at(lambda width: 10.0 * width, 400)

    found = in_loop(widths)
    assert found[0] == FIRST_WIDTH == 4
    assert sorted(set(found)) == [4, 8, 16, 32, 64]
    assert found[200] == 64


@pytest.mark.parametrize(("slots", "most"), [(1, 4), (4, 4), (8, 8), (32, 32)])
def test_a_server_that_queues_is_sent_no_more_than_it_does_at_once(slots, most):
    """The reproduction: 64 requests at once to a server with 4 places, which then timed out."""

    async def widths():
        return await widths_at(lambda width: 10.0 * min(width, slots), 2000)

    found = in_loop(widths)
    assert max(found) == min(64, 2 * most)
    at_most = sum(width <= most for width in found[200:]) / len(found[200:])
    assert at_most > 0.8  # the rest are attempts to grow


def test_growth_of_five_percent_is_not_worth_it():
    async def widths(gain):
        return await widths_at(lambda width: 10.0 if width <= 4 else 10.0 * gain, 60)

    assert in_loop(widths, 1.04)[-1] == 4
    assert in_loop(widths, 1.2)[-1] > 4


def test_it_begins_at_the_places_that_a_server_tells():
    async def widths(places):
        return await widths_at(lambda width: 10.0 * min(width, places), 4, places=places)

    assert in_loop(widths, 2)[0] == 2
    assert in_loop(widths, 100)[0] == 64


def test_requests_refused_together_halve_it_once_and_then_it_grows_by_one():
    widths = in_loop(widths_after_start, 16, [False] * 16 + [True] * 40)
    assert widths[:16] == [8] * 16
    answered = widths[16:]
    assert [answered[n] for n in (7, 8, 8 + 9, 8 + 9 + 11)] == [8, 9, 10, 11]


async def widths_after_start(places, outcomes):
    concurrency = AdaptiveConcurrency(64)
    concurrency.begin_at(places)
    return await widths_after(concurrency, outcomes)


def test_it_never_falls_below_one():
    async def width():
        places = AdaptiveConcurrency(2)
        for _ in range(5):
            await widths_after(places, [False])
        return places.width

    assert in_loop(width) == 1


def test_answers_with_places_to_spare_do_not_widen_it():
    async def width():
        places = AdaptiveConcurrency(64)
        for _ in range(50):
            async with places.turn():
                places.widen()
        return places.width

    assert in_loop(width) == FIRST_WIDTH


def test_no_more_than_its_width_are_under_way():
    async def most():
        places, inside, most = AdaptiveConcurrency(3), 0, 0

        async def one():
            nonlocal inside, most
            async with places.turn():
                inside += 1
                most = max(most, inside)
                await anyio.sleep(0.001)
                inside -= 1

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
        return most

    assert in_loop(most) == 3


@pytest.mark.parametrize("pauses", [(0.1,), (0.1, 0.01)])
def test_a_pause_holds_everybody_back_and_a_shorter_one_does_not_end_it(pauses):
    async def waited():
        places = AdaptiveConcurrency(4)
        for seconds in pauses:
            places.pause(seconds)
        started = time.monotonic()
        async with places.turn():
            return time.monotonic() - started

    assert in_loop(waited) >= 0.099
