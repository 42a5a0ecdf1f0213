from winnow.tasks.engines.protocol import ModelRef, Request, Sampling
from winnow.tasks.rounds.generate import _missing
from winnow.tasks.rounds.generation_batch import PlannedGeneration


def planned(key, name):
    request = Request(prompt=key, sampling=Sampling(), seed=0)
    model = ModelRef(name=name, provider="vllm", model=f"copies/{name}")
    return PlannedGeneration(key=key, model=model, fingerprint="f", request=request)


def keys(groups):
    return [[each.key for each in group] for group in groups]


def test_a_text_that_two_models_share_is_asked_of_one_of_them_though_both_are_asked_at_once():
    wanted = [planned("k1", "one"), planned("k1", "other"), planned("k2", "other"), planned("k2", "other")]
    assert keys(_missing(wanted, 4, {})) == [["k1"], ["k2"]]


def test_groups_are_cut_as_planned_whatever_is_stored_of_them():
    wanted = [planned(f"k{n}", "one") for n in range(6)]
    assert keys(_missing(wanted, 2, {})) == [["k0", "k1"], ["k2", "k3"], ["k4", "k5"]]
    assert keys(_missing(wanted, 2, {"k0": None, "k2": None, "k3": None})) == [["k1"], ["k4", "k5"]]
