"""What served models are asked to tell whether they still are what they were."""

from winnow.tasks.campaign.contacts import N_PROMPTS, canary_requests, prompts_digest, served_model
from winnow.tasks.engines.protocol import ModelRef

MODEL = {"name": "m", "provider": "openai", "model": "qwen"}


def test_a_model_has_sixteen_different_greedy_prompts_of_its_own():
    requests = canary_requests("0" * 64)
    prompts = {each.prompt for each in requests}
    assert len(prompts) == N_PROMPTS == 16
    assert {(each.sampling.temperature, each.sampling.max_tokens, each.seed) for each in requests} == {
        (0, 32, 0)
    }
    others = {each.prompt for each in canary_requests("1" * 64)}
    assert len(prompts & others) <= 1


def test_the_prompts_are_the_same_in_every_release():
    """Other prompts would make every server look changed."""
    assert prompts_digest(canary_requests("0" * 64)).startswith("9bd9211c904acfea")


def test_what_is_sent_with_every_request_makes_another_model():
    seen = {
        served_model(ModelRef(**MODEL | keys), fingerprint)
        for fingerprint in ("a", "b")
        for keys in ({}, {"chat": True}, {"model_args": {"min_p": 0.1}}, {"chat_template_args": {"t": 1}})
    }
    assert len(seen) == 8
    assert served_model(ModelRef(**MODEL | {"name": "other"}), "a") in seen
