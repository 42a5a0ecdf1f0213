"""Rules for how texts are made change a key only where they are new and can change its text."""

import pytest

from winnow.tasks.candidates.cache_keys import request_content
from winnow.tasks.candidates.likelihood_scoring import Asked
from winnow.tasks.candidates.text_rules import NEWEST, apply_rules, as_stored, rules_of
from winnow.tasks.engines.chat import Message, Reasoning
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.rounds.generate import plan_text

WARM, GREEDY = Sampling(temperature=0.7), Sampling()
CHOOSES = Sampling(temperature=0.7, choices=("yes", "no"))
TAGS = Reasoning("think-tags", True, False)
MESSAGES = (Message("user", "<s>a"),)


def model(provider, **fields):
    return ModelRef(name="m", provider=provider, model="m", **fields)


def added(sampling, ref, prompt, rules=NEWEST):
    """What the rules add to all that determines a text."""
    found = request_content(ref, "f", prompt, apply_rules(sampling, ref, prompt, rules=rules), 0)
    plain = request_content(ref, "f", prompt, sampling, 0)
    assert found.items() >= plain.items()
    return {key: found[key] for key in found.keys() - plain.keys()}


@pytest.mark.parametrize(
    ("sampling", "ref", "prompt", "expected"),
    [
        (WARM, model("transformers"), "a", {"gumbel": True}),
        (WARM, model("transformers", chat=True), "<s>a", {"gumbel": True}),
        (WARM, model("transformers", chat=True), MESSAGES, {"gumbel": True}),
        (WARM, model("transformers"), "<s>a", {"gumbel": True, "one_bos": True}),
        (GREEDY, model("transformers"), "<|begin_of_text|>a", {"one_bos": True}),
        (CHOOSES, model("transformers"), "[CLS]a", {"one_bos": True}),
        (GREEDY, model("vllm"), "<bos>a", {"one_bos": True}),
        (GREEDY, model("vllm"), "\uff5cbegin\uff5ca", {"one_bos": True}),
        (GREEDY, model("transformers", chat=True, reasoning=TAGS), "a", {"think_tags": True}),
        (GREEDY, model("vllm", chat=True, reasoning=TAGS), MESSAGES, {"think_tags": True}),
        (CHOOSES, model("vllm", chat=True, reasoning=TAGS), MESSAGES, {}),
        (GREEDY, model("vllm", chat=True, reasoning=Reasoning("server", True, False)), "a", {}),
        (GREEDY, model("openai", chat=True, reasoning=TAGS), "a", {}),
        (Sampling(temperature=1e-6), model("transformers"), "a", {}),
        (GREEDY, model("transformers"), "a <s>", {}),
        (CHOOSES, model("transformers"), "a", {}),
        (WARM, model("vllm"), "a", {}),
        (WARM, model("vllm", chat=True), "<s>a", {}),
        (WARM, model("openai"), "<s>a", {}),
        (WARM, model("litellm", chat=True), "<s>a", {}),
        (WARM, model("a-plug-in"), "<s>a", {}),
    ],
)
def test_what_the_rules_can_change_stands_in_the_key_and_nothing_else(sampling, ref, prompt, expected):
    assert added(sampling, ref, prompt) == expected
    assert added(sampling, ref, prompt, rules=0) == {}


def planned(rules, continuations=(), sampling=WARM, prompt="<s>a"):
    asked = Asked(prompt=prompt, continuations=continuations, texts=continuations)
    return plan_text(model("transformers"), "f", asked, sampling, seed=3, rules=rules, keys={})


def test_log_likelihoods_are_by_no_rule():
    assert planned(0, ("b", "c")).key == planned(NEWEST, ("b", "c")).key


def test_keys_are_the_same_in_every_release():
    """A changed key would have every stored text made again."""
    assert planned(0).key == "e7e714390be62bbfcddefbc3776d8b3d385b885b41b985ddcd0f32588dbe2f3e"
    assert planned(1).key == "5aef9d25abce99dee95fb73a647606c76ab9ba3c8b4f9d299316e35bb5ea863b"
    assert planned(1, sampling=GREEDY, prompt="a").key == planned(0, sampling=GREEDY, prompt="a").key


def test_requests_of_one_kind_share_their_settings():
    """Engines group requests by the object that holds them, and 1 and 1.0 stand in keys as they are."""
    ref, as_integer = model("transformers"), Sampling(temperature=1)
    as_float = Sampling(temperature=1.0)
    assert apply_rules(as_float, ref, "a", rules=1) is apply_rules(as_float, ref, "b", rules=1)
    assert type(apply_rules(as_float, ref, "a", rules=1).temperature) is float
    assert type(apply_rules(as_integer, ref, "a", rules=1).temperature) is int


def test_a_campaign_stores_its_rules_where_they_can_change_a_text():
    assert as_stored(1, [model("openai"), model("vllm")]) == {"text_rules": 1}
    assert as_stored(1, [model("openai"), model("function")]) == {}
    assert as_stored(0, [model("vllm")]) == {}
    assert (rules_of({}), rules_of({"text_rules": 1})) == (0, 1)
