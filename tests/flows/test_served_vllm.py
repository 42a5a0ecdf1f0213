"""Provider openai on a real vLLM server: the texts of provider vllm, and a campaign that loses its server."""

import re
import threading
from contextlib import contextmanager
from dataclasses import replace

import campaign_processes as processes
import pytest
from campaigns import winnow
from faulty_server import faulty_server
from test_vllm_campaign import started, wait_for_decisions
from tiny_models import save_tiny_llama
from vllm_server import vllm_server

from winnow.tasks.engines.chat import Message, as_stored
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.transformers.engine import TransformersEngine

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]  # two engines load at the same time

CONTEXT = 64
CHAT_TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}>"
SERVED = "tiny"
PROMPTS = ("1+1=", "what?", "7" * 60, "{{ x }}", "A")
SHORT = Sampling(max_tokens=8)
CHOICES = ("A>>B", "A>B", "A=B", "B>A", "B>>A")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("weights"), seed=1, chat_template=CHAT_TEMPLATE)


@pytest.fixture(scope="module")
def engines(vllm_imports, tmp_path_factory, weights):
    """A pool whose vLLM engine loads while the servers start."""
    logs = tmp_path_factory.mktemp("logs")
    with EnginePool(log_folder=logs) as pool:
        pool.preload(own(weights))
        yield pool


@pytest.fixture(scope="module")
def server(tmp_path_factory, weights, engines):
    log = tmp_path_factory.mktemp("server") / "server.log"
    with vllm_server(weights, served_as=SERVED, max_model_len=CONTEXT, log=log) as server:
        server.wait_until_ready()
        yield server


def own(weights, **fields):
    args = {"dtype": "float32", "max_model_len": CONTEXT}
    return ModelRef(name="own", provider="vllm", model=str(weights), model_args=args, **fields)


def served(server, **fields):
    return ModelRef(name="served", provider="openai", model=SERVED, model_base_url=server.url, **fields)


def requests():
    """Greedy and drawn texts, texts that fill the window, choices, and prompts that are too long."""
    greedy = [Request(prompt=each, sampling=Sampling(max_tokens=90), seed=0) for each in PROMPTS]
    stopped = [Request(prompt="1+1=", sampling=Sampling(max_tokens=9, stop=("u", "!")), seed=0)]
    chosen = [
        Request(prompt=each, sampling=Sampling(choices=CHOICES, temperature=seed % 2), seed=seed)
        for seed, each in enumerate(PROMPTS)
    ]
    too_long = [
        Request(prompt="7" * length, sampling=Sampling(choices=choices), seed=0)
        for length in (64, 99)
        for choices in ((), CHOICES)
    ]
    confused = [Request(prompt="1", sampling=Sampling(choices=("oui", "né")), seed=0)]
    return [*greedy, *stopped, *chosen, *too_long, *confused]


def weighing():
    """Continuations of one token and of several, prompts that end in spaces, and one that is too long."""
    texts = [("1", "2"), (" blue", " blue and green", "\n"), ("7" * 50, "A")]
    return [
        Request(prompt=prompt, continuations=each, sampling=Sampling(), seed=0)
        for prompt in ("1+1=", "The sky is ", "a\n\n", "7" * 20)
        for each in texts
    ]


def whole():
    """A text by itself, which is longer than the window."""
    return [Request(prompt="", continuations=("7+7=14 is so. " * 12,), sampling=Sampling(), seed=0)]


def facts(answers):
    return [
        (each.text, each.finish_reason, each.input_tokens, each.output_tokens)
        if hasattr(each, "text")
        else each.reason
        for each in answers
    ]


def logprobs(answers):
    return [known for each in answers if (known := getattr(each, "choice_logprobs", None))]


def test_a_served_model_answers_as_the_same_model_in_our_own_process(server, engines, weights):
    ours, theirs = (engines.generate(model, requests()) for model in (own(weights), served(server)))
    assert facts(theirs) == facts(ours)
    assert len(logprobs(ours)) == len(PROMPTS)
    for known, expected in zip(logprobs(theirs), logprobs(ours), strict=True):
        assert known == pytest.approx(expected, abs=1e-3)
    assert re.fullmatch(r"openai vllm/[0-9].* tiny", engines.identity(served(server)))


@pytest.mark.parametrize("chat", [False, True])
def test_tokens_of_a_text_are_as_probable_on_all_three_engines(server, engines, weights, chat):
    asked = [
        Request(prompt=each, sampling=Sampling(max_tokens=8, logprobs=True), seed=0)
        for each in PROMPTS
        if len(each) < 60  # a chat's window holds no more
    ]
    plain = TransformersEngine(replace(own(weights, chat=chat), provider="transformers"))
    expected = plain.generate(asked)
    for model in (own(weights, chat=chat), served(server, chat=chat)):
        answers = engines.generate(model, asked)
        assert [each.text for each in answers] == [each.text for each in expected]
        for answer, same in zip(answers, expected, strict=True):
            told = min(len(answer.token_logprobs), len(same.token_logprobs))  # a server leaves the end out
            assert told >= same.output_tokens - 1
            assert answer.token_logprobs[:told] == pytest.approx(same.token_logprobs[:told], abs=1e-4)


def test_continuations_weigh_the_same_on_all_three_engines(server, engines, weights):
    plain = TransformersEngine(replace(own(weights), provider="transformers"))
    reference, *others = (
        plain.generate(weighing()),
        *(engines.generate(model, weighing()) for model in (own(weights), served(server))),
    )
    assert sum(isinstance(each, GenerationFailure) for each in reference) == 1
    (expected,) = plain.generate(whole())
    for model in (own(weights), served(server)):
        (found,) = engines.generate(model, whole())
        assert found.choice_logprobs == pytest.approx(expected.choice_logprobs, abs=1e-3)  # of 168 tokens
        assert found.input_tokens == expected.input_tokens
    for answers in others:
        assert [getattr(each, "reason", "") for each in answers] == [
            getattr(each, "reason", "") for each in reference
        ]
        assert [getattr(each, "text", "") for each in answers] == [
            getattr(each, "text", "") for each in reference
        ]
        for known, expected in zip(logprobs(answers), logprobs(reference), strict=True):
            assert known == pytest.approx(expected, abs=1e-4)


def test_all_three_engines_say_the_same_of_what_is_greedy(server, engines, weights):
    plain = TransformersEngine(replace(own(weights), provider="transformers"))
    prompts = ("1+1=", "a\n\nb", "7" * 20, "The sky is")
    written = plain.generate(
        [Request(prompt=each, sampling=Sampling(max_tokens=4), seed=0) for each in prompts]
    )
    asked = [
        Request(prompt=prompt, continuations=(text,), sampling=Sampling(), seed=0, is_greedy=True)
        for prompt, answer in zip(prompts, written, strict=True)
        for text in (answer.text, answer.text[:1], f"{answer.text}#", "A", " blue and green")
        if text.strip()
    ]
    reference, *others = (
        plain.generate(asked),
        *(engines.generate(model, asked) for model in (own(weights), served(server))),
    )
    assert {each.is_greedy for each in reference} == {True, False}
    for answers in others:
        assert [(each.is_greedy, each.text) for each in answers] == [
            (each.is_greedy, each.text) for each in reference
        ]
        for known, expected in zip(logprobs(answers), logprobs(reference), strict=True):
            assert known == pytest.approx(expected, abs=1e-4)


def test_a_chat_is_put_into_the_template_that_the_server_has(server, engines):
    def text(prompt, *, chat):
        requests = [Request(prompt=prompt, sampling=Sampling(max_tokens=8), seed=0)]
        return facts(engines.generate(served(server, chat=chat), requests))

    assert text("hello", chat=True) == text("<user>hello>", chat=False)


def test_a_seed_reproduces_its_text_at_a_server(server, engines):
    drawn = Sampling(temperature=1.0, max_tokens=20)
    answers = engines.generate(
        served(server), [Request(prompt="7+7=", sampling=drawn, seed=seed) for seed in (3, 3, 4)]
    )
    first, again, other = facts(answers)
    assert first == again != other


def test_messages_are_one_text_to_vllm_wherever_it_runs(server, engines, weights):
    turns = (
        Message("system", "Add."),
        Message("user", "1+1"),
        Message("assistant", "2"),
        Message("user", "2+2"),
    )
    chats = [turns, (*turns, Message("assistant", "It is"))]
    asked = [Request(prompt=as_stored(each), messages=each, sampling=SHORT, seed=0) for each in chats]
    asked.append(replace(asked[0], sampling=Sampling(choices=CHOICES)))
    whole = "<system>Add.<user>1+1<assistant>2<user>2+2>"
    texts = [whole, f"{whole[:-1]}<assistant>It is"]
    literally = [Request(prompt=each, sampling=SHORT, seed=0) for each in texts]
    literally.append(replace(literally[0], sampling=Sampling(choices=CHOICES)))
    expected = facts(engines.generate(served(server), literally))
    assert facts(engines.generate(served(server, chat=True), asked)) == expected
    assert facts(engines.generate(own(weights, chat=True), asked)) == expected


def campaign(folder, server):
    """The usual campaign with one greedy model that a server runs."""
    folder.mkdir()
    spec = processes.write_campaign(folder)
    text = re.sub(r"  - \{name: two,.*\n", "", spec.read_text())
    text = re.sub(
        r"\{name: one,.*",
        f"{{name: one, provider: openai, model: {SERVED}, model_base_url: '{server.url}'}}",
        text,
    )
    spec.write_text(text.replace("temperature: 0.9", "temperature: 0.0"))
    return folder


@contextmanager
def stand_in(weights):
    """A server of another kind that holds the same weights."""
    engine, turn = TransformersEngine(replace(own(weights), provider="transformers")), threading.Lock()

    def reply(call):
        sampling = Sampling(max_tokens=call.body["max_tokens"])
        with turn:
            (answer,) = engine.generate([Request(prompt=call.prompt, sampling=sampling, seed=0)])
        return answer.text, answer.finish_reason

    with faulty_server(reply=reply, model=SERVED) as server:
        yield server


def test_a_campaign_goes_on_at_another_server_when_its_own_is_killed(server, weights, plain_runs, tmp_path):
    whole, killed = campaign(tmp_path / "whole", server), campaign(tmp_path / "killed", server)
    assert winnow(whole, "run", "campaign.yaml").returncode == 3

    process = started(killed, "run", "campaign.yaml", "--set", "execution.max_retries=60")
    wait_for_decisions(killed, process, 2)
    server.kill()
    process.kill()
    process.wait()
    made = processes.stored_texts(killed)
    assert 0 < len(made) < processes.BUDGET

    with stand_in(weights) as other:
        moved = f"models[0].model_base_url={other.url}"
        assert winnow(killed, "run", "campaign.yaml", "--set", moved).returncode == 3
        assert other.answered == processes.BUDGET - len(made)
    assert processes.history(killed) == processes.history(whole)
    engines = processes.rows(killed, "SELECT DISTINCT engine FROM generations ORDER BY engine")
    assert [re.sub(r"/[^ ]+", "", engine) for (engine,) in engines] == ["openai tiny", "openai vllm tiny"]
