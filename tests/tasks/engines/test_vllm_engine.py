import json
import os
import re
import string
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from tiny_models import add_token, save_tiny_llama
from waiting import PATIENCE_S

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.pool.pool import EnginePool
from winnow.tasks.engines.pool.request_scheduler import RequestGroup
from winnow.tasks.engines.protocol import ModelRef, Request, Sampling, Structure
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.transformers.engine import TransformersEngine
from winnow.tasks.engines.vllm.engine import VllmEngine

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("vllm_imports")]

ROOT = Path(__file__).parents[3]
PROMPTS = [f"{i}+{i * i}=" for i in range(20)]
STRANGE = "§"  # the tokenizer knows it, the weights do not


def reference(folder, **fields):
    args = {"dtype": "float32", "max_model_len": 64}
    defaults = {"name": "tiny", "provider": "vllm", "model": str(folder), "model_args": args}
    return ModelRef(**{**defaults, **fields})


def request(prompt, seed=0, **sampling):
    return Request(prompt=prompt, sampling=Sampling(**{"max_tokens": 8, **sampling}), seed=seed)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_tiny_llama(tmp_path_factory.mktemp("tiny"), seed=0)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return reference(add_token(save_tiny_llama(tmp_path_factory.mktemp("strange"), seed=0), STRANGE))


@pytest.fixture(scope="module", autouse=True)
def fresh(weights, tmp_path_factory):
    """An engine in a process with imports of its own, which it makes while the others load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("winnow.tasks.processes.worker_process.fork_worker", lambda *_: None)
        engine = VllmEngine(reference(weights), EngineSettings(log_folder=tmp_path_factory.mktemp("logs")))
    yield engine
    engine.close()


@pytest.fixture(scope="module", autouse=True)
def doomed(vllm_imports, weights, tmp_path_factory):
    """An engine that cannot load; it finds that out while the others load."""
    too_long = reference(weights, name="doomed", model_args={"max_model_len": 99_999})
    engine = VllmEngine(
        too_long, EngineSettings(log_folder=tmp_path_factory.mktemp("logs"), load_timeout=300)
    )
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    with EnginePool(log_folder=tmp_path_factory.mktemp("logs")) as pool:
        yield pool


@pytest.fixture
def forked(weights, tmp_path):
    """An engine that shares the weights of `fresh` and the imports of `pool`."""
    engine = VllmEngine(reference(weights), EngineSettings(log_folder=tmp_path))
    yield engine
    engine.close()


def facts(answers):
    return [(a.text, a.finish_reason, a.input_tokens, a.output_tokens) for a in answers]


def youngest_worker():
    return max(psutil.Process().children(recursive=True), key=psutil.Process.create_time)


def test_greedy_answers_are_those_of_the_reference_engine(pool, model, weights):
    requests = [request(p) for p in PROMPTS]
    requests += [request("7" * 60, max_tokens=50), request("1+1=", stop=("u", "!"))]
    plain = TransformersEngine(reference(weights))
    assert facts(pool.generate(model, requests)) == facts(plain.generate(requests))


def test_penalties_biases_and_stop_tokens_are_those_of_the_reference_engine(pool, model, weights):
    plain = TransformersEngine(reference(weights))
    ways = [
        {"presence_penalty": 1.5},
        {"frequency_penalty": 0.9},
        {"repetition_penalty": 1.8},
        {"logit_bias": ((20, 3.0), (21, -100.0))},
        {"stop_token_ids": tuple(range(30, 60))},
        {"presence_penalty": 0.4, "repetition_penalty": 0.7, "logit_bias": ((25, 4.0),)},
    ]
    requests = [request(p, **way) for p in PROMPTS[:6] for way in ways]
    expected = facts(plain.generate(requests))
    assert facts(pool.generate(model, requests)) == expected
    unset = facts(plain.generate([request(p) for p in PROMPTS[:6]]))
    for number in range(len(ways)):  # each of them changes something
        assert expected[number :: len(ways)] != unset


def test_the_log_probabilities_of_a_text_are_those_of_the_reference_engine(pool, model, weights):
    ways = [
        {},
        {"presence_penalty": 1.5, "logit_bias": ((20, 3.0),)},
        {"stop_token_ids": tuple(range(30, 60))},
    ]
    requests = [request(p, logprobs=True, **way) for p in PROMPTS[:6] for way in ways]
    ours, plain = pool.generate(model, requests), TransformersEngine(reference(weights)).generate(requests)
    assert facts(ours) == facts(plain)
    for answer, expected in zip(ours, plain, strict=True):
        assert len(answer.token_logprobs) == answer.output_tokens
        assert answer.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-4)
    assert pool.generate(model, [request(PROMPTS[0])])[0].token_logprobs is None


def test_min_p_leaves_the_most_probable_token_alone(pool, model):
    sampled = [request(p, seed, temperature=2.0, min_p=1.0) for seed, p in enumerate(PROMPTS)]
    greedy = [request(p) for p in PROMPTS]
    assert facts(pool.generate(model, sampled)) == facts(pool.generate(model, greedy))


def test_a_text_is_held_to_its_structure(pool, model):
    schema = {"type": "object", "properties": {"n": {"enum": [3, 5]}}, "required": ["n"]}
    schema["additionalProperties"] = False
    structures = [
        Structure("regex", "[ab]{3}c"),
        Structure("choice", '["yes", "no", "not"]'),
        Structure("json_schema", json.dumps(schema)),
        Structure("grammar", 'root ::= "x" | "y" root'),
        Structure("regex", "(unclosed"),
    ]
    requests = [
        request(p, seed, temperature=1.0, max_tokens=60, structure=each)
        for seed, p in enumerate(PROMPTS[:4])
        for each in structures
    ]
    answers = pool.generate(model, requests)
    for regex, choice, written, grammar, refused in zip(*[iter(answers)] * 5, strict=True):
        assert re.fullmatch("[ab]{3}c", regex.text)
        assert choice.text in ("yes", "no", "not")
        assert json.loads(written.text)["n"] in (3, 5)
        assert re.fullmatch("y*x?", grammar.text)
        assert refused.reason == "refused"


def test_engines_whose_processes_are_forked_answer_like_one_that_is_not(pool, model, fresh, forked):
    requests = [request(p, seed, temperature=seed % 3 / 2) for seed, p in enumerate(PROMPTS)]
    requests += [request(p, seed, choices=("A>B", "B>A"), temperature=1.0) for seed, p in enumerate(PROMPTS)]
    expected = facts(fresh.generate(requests))
    assert facts(forked.generate(requests)) == expected
    assert facts(pool.generate(model, requests)) == expected
    assert fresh.identity == forked.identity == pool.identity(model)
    parents = {psutil.Process(engine.pid).ppid() for engine in (fresh, forked)}
    assert len(parents) == 2
    assert os.getpid() in parents


def test_a_seed_reproduces_its_text_whatever_else_is_in_the_batch(pool, model):
    requests = [request("7+7=", seed, temperature=1.0) for seed in (3, 3, 4)]
    first, again, other = facts(pool.generate(model, requests))
    assert first == again != other
    assert facts(pool.generate(model, requests[:1])) == [first]


def test_what_is_asked_meanwhile_joins_and_changes_no_text(pool, model):
    long = [request(prompt, seed=n, temperature=1.0, max_tokens=48) for n, prompt in enumerate(PROMPTS)]
    short = [request(prompt, max_tokens=1) for prompt in PROMPTS[:3]]
    chosen = [request("1+1=", choices=("2", "3"))]
    alone = [[each.text for each in pool.generate(model, group)] for group in (long, short, chosen)]
    with closing(pool.stream()) as stream:
        groups = [RequestGroup(model=model, requests=each) for each in (long, short, chosen)]
        numbers = stream.add(groups)
        answered = [stream.next_answers() for _ in groups]
    texts = {number: [each.text for each in answers] for number, answers in answered}
    assert [texts[number] for number in numbers] == alone


def test_choices_and_their_probabilities_are_those_of_the_reference_engine(pool, model, weights):
    choices = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
    requests = [request(p, seed, choices=choices, temperature=seed % 2) for seed, p in enumerate(PROMPTS)]
    requests += [request("1+1=", choices=("oui", "né")), request("1" * 63, choices=("[[A", "[[B"))]
    *plain, unspeakable, too_long = TransformersEngine(reference(weights)).generate(requests)
    *ours, also_unspeakable, also_too_long = pool.generate(model, requests)
    assert facts(ours) == facts(plain)
    for answer, expected in zip(ours, plain, strict=True):
        assert answer.choice_logprobs == pytest.approx(expected.choice_logprobs, abs=1e-3)
    assert (also_unspeakable, also_too_long) == (unspeakable, too_long)


def test_a_scale_of_many_points_is_that_of_the_reference_engine(pool, model, weights):
    """vLLM tells 20 log-probabilities in one place unless it is loaded for more."""
    choices = tuple(string.ascii_letters)
    assert len(choices) == 52
    requests = [request(p, choices=choices) for p in PROMPTS[:3]]
    plain, ours = TransformersEngine(reference(weights)).generate(requests), pool.generate(model, requests)
    assert facts(ours) == facts(plain)
    for answer, expected in zip(ours, plain, strict=True):
        assert answer.choice_logprobs == pytest.approx(expected.choice_logprobs, abs=1e-3)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (request(""), "empty_prompt"),
        (request("7" * 64), "prompt_too_long"),
        (request("\ud800"), "bad_prompt"),
        (request(STRANGE), "bad_prompt"),
        (request("1", temperature=3.0), "refused"),  # vLLM takes at most 2
    ],
)
def test_a_bad_request_fails_alone(pool, model, bad, reason):
    good, failure, also_good = pool.generate(model, [request("1+1="), bad, request("2+2=")])
    assert failure.reason == reason
    assert facts([good, also_good]) == facts(pool.generate(model, [request("1+1="), request("2+2=")]))


def test_a_small_prefix_cache_holds_what_prompts_share_that_stand_next_to_each_other(weights, tmp_path):
    few_shot = [f"{n}{'1+1=2;' * 16}" for n in range(6)]
    planned = [shots + f"{n}+{n}=" for n in range(4) for shots in few_shot]
    # 13 blocks of 32 tokens besides vLLM's own: enough for two requests at once, not for six beginnings.
    small = {"block_size": 32, "num_gpu_blocks_override": 14, "max_num_seqs": 2, "max_model_len": 160}
    tiny = reference(weights, model_args={"dtype": "float32", **small})
    with closing(VllmEngine(tiny, EngineSettings(log_folder=tmp_path))) as engine:
        mixed, ordered = (
            dict(zip(prompts, engine.generate([request(each) for each in prompts]), strict=True))
            for prompts in (planned, sorted(planned))
        )
        (chosen,) = engine.generate([request(few_shot[-1] + "=", choices=("A>B", "B>A"))])
    assert {each: mixed[each].text for each in planned} == {each: ordered[each].text for each in planned}
    assert sum(answer.cached_tokens for answer in mixed.values()) == 0
    assert [answer.cached_tokens for answer in ordered.values()] == [0, 96, 96, 96] * len(few_shot)
    assert chosen.cached_tokens == 96


def test_hostile_text_is_text(pool, model):
    prompts = ["\x00", "🙂" * 9, "\r\n\x1b[2J", "</s>", "{{ 7*7 }}"]
    assert len(facts(pool.generate(model, [request(p) for p in prompts]))) == len(prompts)


def test_the_identity_tells_software_device_and_precision(pool, model):
    assert pool.identity(model).startswith("vllm ")
    assert pool.identity(model).endswith(" float32")


def test_what_cannot_be_loaded_is_refused_in_one_sentence(doomed):
    with pytest.raises(EngineLoadFailed, match=r"^model 'doomed': vLLM cannot load it: .*99999") as caught:
        doomed.generate([request("1+1=")])
    assert "\n" not in str(caught.value)


def test_a_path_without_a_checkpoint_starts_no_process(tmp_path):
    with pytest.raises(EngineLoadFailed, match=r"there is no folder .*nowhere"):
        VllmEngine(reference(tmp_path / "nowhere"), EngineSettings(log_folder=tmp_path))


def test_loading_for_too_long_is_a_timeout_and_closing_ends_it(weights, tmp_path):
    engine = VllmEngine(reference(weights), EngineSettings(log_folder=tmp_path, load_timeout=0.5))
    try:
        with pytest.raises(EngineTimeout, match=r"did not load within 0.5 s"):
            engine.generate([request("1+1=")])
    finally:
        engine.close()
    assert not psutil.pid_exists(engine.pid)


# The parent is killed while its worker is busy importing vLLM.
PARENT = """
import sys, time
from pathlib import Path
from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.vllm.engine import VllmEngine

model = ModelRef(name="tiny", provider="vllm", model=sys.argv[1])
print(VllmEngine(model, EngineSettings(log_folder=Path(sys.argv[2]))).pid, flush=True)
time.sleep(600)
"""


def test_a_killed_parent_leaves_no_worker(weights, tmp_path):
    command = [sys.executable, "-c", PARENT, str(weights), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        time.sleep(2.0)
        assert worker.is_running()
        parent.kill()
    psutil.wait_procs([worker], timeout=PATIENCE_S)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


def test_a_killed_worker_is_reported_and_started_again(pool, model):
    before = facts(pool.generate(model, [request("1+1=")]))
    youngest_worker().kill()
    with pytest.raises(EngineDied, match=r"the vLLM process has ended: it was ended by signal SIGKILL"):
        pool.generate(model, [request("1+1=")])
    assert facts(pool.generate(model, [request("1+1=")])) == before
