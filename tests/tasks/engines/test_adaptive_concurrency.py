import time

import anyio
import pytest

from winnow.tasks.engines.openai.adaptive_concurrency import FIRST_WIDTH, AdaptiveConcurrency


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


def test_it_doubles_with_each_full_set_of_answers_up_to_the_largest():
    widths = in_loop(widths_after_start, 100, [True] * 300)
    assert widths[FIRST_WIDTH - 1] == 2 * FIRST_WIDTH
    assert widths[3 * FIRST_WIDTH - 1] == 4 * FIRST_WIDTH
    assert max(widths) == 100


def test_requests_refused_together_halve_it_once_and_then_it_grows_by_one():
    widths = in_loop(widths_after_start, 16, [False] * 16 + [True] * 40)
    assert widths[:16] == [8] * 16
    answered = widths[16:]
    assert [answered[n] for n in (7, 8, 8 + 9, 8 + 9 + 11)] == [8, 9, 10, 11]


async def widths_after_start(largest, outcomes):
    return await widths_after(AdaptiveConcurrency(largest), outcomes)


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
