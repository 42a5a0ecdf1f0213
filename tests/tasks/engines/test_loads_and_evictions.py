from functools import cache
from itertools import chain, combinations, permutations

import pytest

from winnow.tasks.engines.pool.loads_and_evictions import (
    Allocation,
    ResidentModel,
    allocation_for,
    asking_order,
    weight,
)

ONE_DEVICE = (0,)


def subsets(models):
    return chain.from_iterable(combinations(models, size) for size in range(len(models) + 1))


def loads_of_the_plan(loaded, passes, places, seconds=None, later=None):
    """What is loaded in a row of passes, by the plan alone.

    What is known to come after a pass is `later`, or without it the next pass.
    """
    seconds = seconds or {}
    hints = [*passes[1:], ()] if later is None else [later] * len(passes)
    priority, clock, made = {key: seconds.get(key, 0.0) for key in loaded}, 0.0, []
    memory = list(loaded)  # least recently used first
    for wanted, hint in zip(passes, hints, strict=True):
        waiting = list(wanted)
        while waiting:
            key = asking_order(waiting, loaded=memory, later=hint, seconds=seconds)[0]
            if key not in memory:
                resident = [
                    ResidentModel(key=each, devices=ONE_DEVICE, priority=priority[each]) for each in memory
                ]
                allocation = allocation_for(
                    1, devices=ONE_DEVICE, places=places, resident=resident, waiting=waiting, later=hint
                )
                for each in allocation.leaving:
                    memory.remove(each)
                    clock = max(clock, priority.pop(each))
                made.append(key)
            else:
                memory.remove(key)
            memory.append(key)
            priority[key] = clock + seconds.get(key, 0.0)
            waiting.remove(key)
    return made


def fewest_loads(loaded, passes, places):
    """The same by trying everything: any order within a pass, and anybody makes room."""

    @cache
    def fewest(memory, wanted, left):
        if not wanted:
            return fewest(memory, frozenset(left[0]), left[1:]) if left else 0
        return min(
            cost + fewest(then, wanted - {key}, left)
            for key in wanted
            for cost, then in _ways_to_load(memory, key, places)
        )

    return fewest(frozenset(loaded), frozenset(), tuple(passes))


def _ways_to_load(memory, key, places):
    if key in memory:
        return [(0, memory)]
    if len(memory) < places:
        return [(1, memory | {key})]
    return [(1, (memory - {each}) | {key}) for each in memory]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_no_order_and_no_eviction_loads_less_often_in_a_pass_and_the_one_after_it(places):
    models = "abcd"
    tried = 0
    for memory in chain.from_iterable(permutations(models, size) for size in range(places + 1)):
        for first in subsets(models):
            for second in subsets("ad"):
                made = loads_of_the_plan(memory, [first, second], places)
                assert len(made) == fewest_loads(memory, [first, second], places), (memory, first, second)
                tried += 1
    assert tried > 300


@pytest.mark.parametrize("places", [1, 2, 3, 4])
def test_rounds_of_candidates_and_a_judge_load_as_seldom_as_can_be(places):
    """As duels are: the same candidates in every round, then the judge, of whom alone it is known."""
    passes = [("a", "b", "c"), ("j",)] * 3
    assert len(loads_of_the_plan((), passes, places, later=("j",))) == fewest_loads((), passes, places)


def test_a_pass_over_models_in_turn_saves_a_load_for_every_place():
    rounds = [("a", "b", "c", "d")] * 5
    assert len(loads_of_the_plan((), rounds, 2)) == 4 + 4 * (4 - 2)  # in order it would be 5 * 4


def test_of_models_to_load_the_dearest_comes_last_and_is_still_there_the_next_time():
    seconds = {"small": 1.0, "large": 60.0, "medium": 9.0}
    order = asking_order(["large", "small", "medium"], loaded=(), seconds=seconds)
    assert order == ["small", "medium", "large"]
    made = loads_of_the_plan((), [("large", "small", "medium")] * 3, 1, seconds)
    assert made.count("large") < made.count("small") == 3


def test_what_is_loaded_comes_first_then_what_sleeps_and_what_is_equal_keeps_its_order():
    wanted = ["a", "b", "c", "d", "e", "f"]
    order = asking_order(wanted, loaded={"e", "b"}, asleep={"d"}, later={"a"}, seconds={})
    assert order == ["b", "e", "d", "c", "f", "a"]


def test_a_dear_model_stays_but_not_for_ever():
    """Beside it two cheap models take turns; each of their loads uses up some of its priority."""
    passes = [("dear",), *[("a",), ("b",)] * 9]
    made = loads_of_the_plan((), passes, 2, {"dear": 5.0, "a": 1.0, "b": 1.0}, later=())
    turns = made[1:]
    assert turns == ["a", "b"] * (len(turns) // 2)
    assert 5 <= len(turns) < 18, "in the end it leaves, and a and b share the places"


def test_loads_that_are_alike_count_the_same():
    assert weight(0.0) == weight(0.9) == weight(1.2) == 1.0
    assert weight(55.0) == weight(70.0) == 64.0
    assert weight(130.0) > weight(60.0)


def test_of_equals_on_different_devices_the_one_asked_longest_ago_goes():
    company = [resident("b", 1, priority=1.0), resident("a", 0, priority=1.0)]
    assert allocation_for(1, devices=(0, 1), places=1, resident=company) == Allocation(
        devices=(1,), leaving=("b",)
    )


def resident(key, *devices, **fields):
    return ResidentModel(key=key, devices=devices, **fields)


def test_models_are_spread_over_devices():
    here = {"devices": (0, 1, 2), "places": 2}
    company = [resident("a", 0), resident("b", 1), resident("c", 1)]
    assert allocation_for(1, resident=company, **here) == Allocation(devices=(2,))
    assert allocation_for(2, resident=company, **here) == Allocation(devices=(0, 2))


def test_a_device_at_work_takes_no_other_model():
    here = {"devices": (0, 1), "places": 2}
    assert allocation_for(1, resident=[resident("a", 0, busy=True)], **here) == Allocation(devices=(1,))
    assert allocation_for(2, resident=[resident("a", 0, busy=True)], **here) is None
    assert allocation_for(1, resident=[resident("a", 0, 1, busy=True)], **here) is None
    assert allocation_for(0, resident=[resident("a", 0, 1, busy=True)], **here) == Allocation(devices=())


def test_a_wide_model_makes_room_on_all_devices_it_takes_and_goes_from_all():
    here = {"devices": (0, 1), "places": 1}
    assert allocation_for(2, resident=[resident("a", 0), resident("b", 1)], **here).leaving == ("a", "b")
    assert allocation_for(1, resident=[resident("wide", 0, 1)], **here) == Allocation(
        devices=(0,), leaving=("wide",)
    )
    assert allocation_for(2, resident=[resident("wide", 0, 1)], **here).leaving == ("wide",)


def test_who_is_asked_in_this_pass_does_not_go_and_who_is_asked_in_the_next_goes_last():
    here = {"devices": (0, 1), "places": 1, "resident": [resident("a", 0), resident("b", 1, priority=9.0)]}
    assert allocation_for(1, **here).leaving == ("a",)
    assert allocation_for(1, later={"a"}, **here).leaving == ("b",)
    assert allocation_for(1, waiting={"a"}, **here).leaving == ("b",)
    assert allocation_for(1, waiting={"a", "b"}, **here) is None


def test_a_model_that_sleeps_finds_room_on_its_own_devices_alone():
    here = {"places": 1, "resident": [resident("a", 0, priority=9.0), resident("b", 1)]}
    assert allocation_for(1, devices=(0,), **here) == Allocation(devices=(0,), leaving=("a",))
