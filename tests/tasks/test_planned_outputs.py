from winnow.tasks.campaign.planned_outputs import PlannedGeneration, missing_groups, whole_calls
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling


def planned(key, name, prompt="p", provider="vllm"):
    request = Request(prompt=prompt, sampling=Sampling(), seed=0)
    model = ModelRef(name=name, provider=provider, model=f"copies/{name}")
    return PlannedGeneration(key=key, model=model, fingerprint="f", request=request)


def keys(groups):
    return [[each.key for each in group] for group in groups]


def test_a_text_that_two_models_share_is_asked_of_one_of_them_though_both_are_asked_at_once():
    wanted = [planned("k1", "one"), planned("k1", "other"), planned("k2", "other"), planned("k2", "other")]
    assert keys(missing_groups(wanted, 4, set())) == [["k1"], ["k2"]]


def test_groups_are_cut_as_planned_whatever_is_stored_of_them():
    wanted = [planned(f"k{n}", "one") for n in range(6)]
    assert keys(missing_groups(wanted, 2, set())) == [["k0", "k1"], ["k2", "k3"], ["k4", "k5"]]
    assert keys(missing_groups(wanted, 2, {"k0", "k2", "k3"})) == [["k1"], ["k4", "k5"]]


def test_a_whole_call_is_the_same_whatever_rounds_in_flight_have_stored_of_it():
    wanted = [planned(f"k{n}", "one") for n in range(4)]
    first = [["k0", "k1"], ["k2", "k3"]]
    assert keys(whole_calls(wanted, 2, set(), {}, own=7)) == first
    assert keys(whole_calls(wanted, 2, {"k0"}, {"k0": 6}, own=7)) == first
    assert keys(whole_calls(wanted, 2, {"k0", "k1"}, {"k0": 7, "k1": 7}, own=7)) == first[1:]


def test_of_a_whole_call_what_was_stored_before_the_round_began_is_no_part():
    wanted = [planned(f"k{n}", "one") for n in range(4)]
    assert keys(whole_calls(wanted, 2, {"k0", "k2", "k3"}, {}, own=7)) == [["k1"]]


def test_of_an_answered_call_what_failed_is_asked_again_and_what_is_there_is_not():
    wanted = [planned(f"k{n}", "one") for n in range(3)]
    assert keys(whole_calls(wanted, 3, {"k0", "k1"}, {"k0": 7, "k1": 6}, own=7)) == [["k2"]]
    assert whole_calls(wanted[:2], 2, {"k0", "k1"}, {"k0": 6, "k1": 6}, own=7) == []


def test_prompts_that_begin_alike_stand_next_to_each_other_and_equal_ones_as_planned():
    prompts = ["B 2", "A 1", "B 1", "A 2", "B 1", "A 1"]
    wanted = [planned(f"k{n}", "one", prompt) for n, prompt in enumerate(prompts)]
    wanted[2:2] = [planned("other", "other", "A 3")]
    ordered = [["k1", "k5"], ["k3", "k2"], ["k4", "k0"], ["other"]]
    assert keys(missing_groups(wanted, 2, set())) == ordered
    assert keys(missing_groups(wanted, 2, {"k3", "k0"})) == [["k1", "k5"], ["k2"], ["k4"], ["other"]]
    assert keys(whole_calls(wanted, 2, {"k3"}, {"k3": 7}, own=8)) == ordered


def test_each_candidate_is_asked_throughout_the_round_of_a_server():
    """Else those asked while few requests are at the server have a larger share of its time."""
    wanted = [
        planned(f"{name}{n:03}", "m", f"{name} {n:03}", "openai") for name in "abcd" for n in range(160)
    ]
    groups = missing_groups(wanted, 8, set())
    assert sorted(key for group in keys(groups) for key in group) == sorted(each.key for each in wanted)
    assert all(len({key[0] for key in group}) == 1 for group in keys(groups))
    names = [group[0][0] for group in keys(groups)]
    for start in range(0, 80, 20):
        assert all(4 <= names[start : start + 20].count(name) <= 6 for name in "abcd")
    by_engine = [planned(each.key, "m", each.request.prompt) for each in wanted]
    assert [group[0][0] for group in keys(missing_groups(by_engine, 8, set()))] == sorted(names)
