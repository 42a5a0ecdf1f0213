"""The rows of `python -m tests.gpu_check` on the processor, with tiny models."""

import os
from dataclasses import replace

import pytest
from tiny_models import save_tiny_llama

from tests.benchmarks import throughput
from tests.gpu_check import invariance, lengths, loading, sleeping, spreading
from tests.gpu_check.site import Site
from winnow.tasks.engines import providers

SWITCH = "VLLM_BATCH_INVARIANT"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=1)


@pytest.fixture(autouse=True)
def _providers_are_given_back():
    """A row has a process of its own, and the providers that it adds go with that."""
    before = dict(providers.PROVIDERS)
    yield
    providers.PROVIDERS.clear()
    providers.PROVIDERS.update(before)


@pytest.fixture
def site(tmp_path, model):
    return Site(
        folder=tmp_path,
        provider="transformers",
        device="cpu",
        n_devices=2,
        demo=tmp_path / "demo",
        model=model,
        texts=4,
    )


def test_models_are_loaded_again_and_beside_each_other(site):
    found = dict(loading.loads(site))
    assert len(found) == loading.TIMES
    assert all("0 MiB still taken" in each for each in found.values())
    ((what, measured),) = loading.beside(site)
    assert what.startswith("two engines begun at once")
    assert measured.endswith("memory not known")


def test_a_model_that_writes_other_texts_the_second_time_is_a_failure(site, monkeypatch):
    texts = iter("ab")
    monkeypatch.setattr(loading, "loaded", lambda site: (0.0, [next(texts)]))
    with pytest.raises(RuntimeError, match="loaded again, writes other texts"):
        list(loading.loads(site))


def test_an_engine_that_could_not_be_forked_is_a_failure(site, monkeypatch):
    vllm = replace(site, provider="vllm")
    log = vllm.logs / "measured.log"
    log.parent.mkdir()

    def loaded(site):
        with log.open("a") as file:
            file.write(
                "started as a new process without the prepared imports: imports opened a device\nmore\n"
            )
        return 7.0, ["a"]

    monkeypatch.setattr(loading, "loaded", loaded)
    found = loading.loads(vllm)
    assert next(found)[1] == "7.0 s"
    with pytest.raises(
        RuntimeError, match=r"could not be forked: imports opened a device \(it took 7.0 s\)$"
    ):
        next(found)


def test_texts_are_compared_alone_together_and_in_other_groups(site):
    found = dict(invariance.equal_texts(site))
    assert list(found) == ["float32", "bfloat16"]
    assert found["float32"].count("4 of 4 texts equal") == 2
    assert "cpu bfloat16" in found["bfloat16"]


def test_the_switch_is_set_for_a_while_alone(monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    with invariance.switched_on():
        assert os.environ[SWITCH] == "1"
    assert os.environ[SWITCH] == "0"
    monkeypatch.delenv(SWITCH)
    with invariance.switched_on():
        assert os.environ[SWITCH] == "1"
    assert SWITCH not in os.environ


def test_requests_are_spread_over_two_devices(site):
    one, two, beside = spreading.replicas(site, groups=4, group=2, tokens=2)
    assert [what for what, _ in (one, two)] == ["8 texts on 1 device", "8 texts on 2 devices"]
    assert beside[1].endswith("8 of 8 texts equal")
    alone = replace(site, n_devices=1)
    assert [*spreading.replicas(alone), *spreading.tensor_parallel(alone)] == [
        ("one model on two devices", "one device"),
        ("one model over two devices", "one device"),
    ]


def test_what_a_device_or_an_engine_has_not_is_said(site):
    assert [measured for _, measured in sleeping.level_1(site)] == [
        "not here: provider transformers does not sleep"
    ]
    assert [measured for _, measured in sleeping.level_2(site)] == [sleeping.NOT_HERE]


@pytest.mark.vllm
@pytest.mark.usefixtures("vllm_imports")
def test_vllm_says_that_it_cannot_sleep_here(site):
    assert list(sleeping.level_1(replace(site, provider="vllm"))) == [("sleep and wake", sleeping.NOT_HERE)]


@pytest.mark.vllm
@pytest.mark.usefixtures("vllm_imports")
def test_a_campaign_with_texts_of_different_lengths_is_put_beside_one_call(site, monkeypatch):
    asked = []
    monkeypatch.setattr(throughput, "AHEAD", ("auto",))
    monkeypatch.setattr(throughput, "plain_lengths", lambda folder, model, found: asked.append(found) or 2.0)
    ((what, measured),) = lengths.barrier_and_auto(site, budget=64)
    (found,) = asked
    assert what.endswith(f"`lookahead: auto` ({found.ahead})")
    assert found.comparisons == len(found.texts) == 64
    assert f"{found.seconds / 2.0:.2f} times one call with all of them (2.0 s)" in measured


def test_plain_vllm_that_fails_says_the_last_thing_it_said():
    program = "import sys; print('[W noise]'); print('ROW [\"a\", 1.0]', flush=True); sys.exit('no memory')"
    lines = loading.plain_vllm(program, {})
    assert next(lines) == ["a", 1.0]
    with pytest.raises(RuntimeError, match="ended with 1: no memory"):
        next(lines)
