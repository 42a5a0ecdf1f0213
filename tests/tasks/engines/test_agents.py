"""Programs, endpoints and functions as engines: what they are given, and whatever they do."""

import asyncio
import importlib.util
import itertools
import json
import os
import py_compile
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from signal import SIGKILL
from types import SimpleNamespace

import pytest
from waiting import PATIENCE_S, until

from winnow.tasks.candidates.cache_keys import fingerprint_model
from winnow.tasks.engines.agents import python as python_agents
from winnow.tasks.engines.agents.command import _Run
from winnow.tasks.engines.agents.http import pointed, value_at
from winnow.tasks.engines.agents.kit import calls, program_files
from winnow.tasks.engines.agents.kit import engine as kit
from winnow.tasks.engines.agents.kit.calls import CallFailed, Patience
from winnow.tasks.engines.agents.kit.engine import provider_of, settings_of
from winnow.tasks.engines.agents.kit.replies import MOST_TRACE, json_or_text, read_reply
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.known_providers import AGENTS, RECORDED
from winnow.tasks.engines.protocol import (
    BatchUnfinished,
    Completion,
    GenerationFailure,
    ModelRef,
    Request,
    Sampling,
)
from winnow.tasks.engines.providers import EngineSettings, start_engine
from winnow.tasks.plugins.allowed_code import NotAllowed, ask_of
from winnow.tasks.processes import orphans
from winnow.tasks.processes.child_process import end_process, start_process

ACTS = {
    "answers": '{"output": m["example"]["input"].upper() + str(m["params"].get("k", ""))}',
    "reports": '{"output": "x", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "cost": 0.5, '
    '"metrics": {"steps": 2}, "trace": ["a"]}',
    "tells": "json.dumps(m, sort_keys=True)",
    "fails": 'fail("no luck")',
    "hangs": "hang()",
    "null": '{"output": None}',
    "negative": '{"output": "x", "cost": -1}',
}
"""What an agent replies to a message m, by the example's `act`."""

PROGRAM = f"""
import json, os, sys, time
def fail(why):
    print(why, file=sys.stderr)
    print(json.dumps({{"cost": 0.25}}))
    sys.exit(3)
def hang():
    child = os.fork()
    if not child:
        time.sleep(600)
    open("children", "a").write(f"{{os.getpid()}} {{child}}\\n")
    time.sleep(600)
m = json.load(sys.stdin)
said = eval({ACTS!r}[m["example"]["act"]])
print(said if isinstance(said, str) else json.dumps(said))
"""

FUNCTION = f"""
import json, time
def fail(why):
    raise OSError(why)
def hang():
    time.sleep(600)
def answer(example, params, sampling, seed, prompt=None, limits=None):
    m = {{"example": example, "params": params, "sampling": sampling, "seed": seed}}
    m |= {{key: value for key, value in (("prompt", prompt), ("limits", limits)) if value is not None}}
    return eval({ACTS!r}[example["act"]])
"""


class Endpoint(BaseHTTPRequestHandler):
    """Replies as the other agents do; the request's headers and bodies are kept."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, dict(self.headers), json.loads(body)))
        m, status, headers = json.loads(body), 200, {}

        def fail(why):
            nonlocal status
            status = 500
            return {"error": why}

        said = eval(ACTS[m["example"]["act"]], {"json": json, "m": m, "fail": fail, "hang": self.server.hang})
        if (scripted := self.server.script) is not None:
            status, headers, said = scripted
        content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def endpoint(script=None):
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        released = threading.Event()
        server.daemon_threads = True
        server.seen, server.script = [], script
        server.hang = lambda: released.wait(PATIENCE_S) or ""
        server.url = f"http://127.0.0.1:{server.server_port}/x"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            released.set()
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(PROGRAM)
    (tmp_path / "function.py").write_text(FUNCTION)


@pytest.fixture
def server():
    with endpoint() as found:
        yield found


def reference(provider, server=None, **keys):
    own = {
        "command": {"command": [sys.executable, "agent.py"]},
        "python": {"function": "function.py:answer"},
        "http": {"url": "http://127.0.0.1:9/x" if server is None else server.url},
    }[provider]
    setup = settings_of(provider, {**own, **keys}).model_dump(mode="json")
    return ModelRef(name="agent", provider=provider, model="agent", chat=True, setup=setup)


def asked(act, text="hi", **fields):
    return Request(
        prompt=json.dumps({"example": {"act": act, "input": text, **fields}}), sampling=Sampling(), seed=7
    )


@contextmanager
def running(model, tmp_path):
    engine = start_engine(model, EngineSettings(log_folder=tmp_path / "logs"))
    try:
        yield engine
    finally:
        engine.close()


def answers(model, tmp_path, *requests):
    with running(model, tmp_path) as engine:
        return engine.generate(requests)


RUN = sorted(AGENTS - {RECORDED})
"""The providers that run something; what stands in the data is tried in tests/flows/test_import_scores.py."""


def test_each_file_is_a_provider():
    assert sorted(AGENTS) == ["command", "http", "python", RECORDED]
    for name in RUN:
        assert provider_of(name).settings.model_fields.keys() >= {"params", "timeout", "retry_on"}


@pytest.mark.parametrize("provider", RUN)
def test_an_agent_answers_each_example(provider, server, tmp_path):
    model = reference(provider, server, params={"k": 3})
    found = answers(model, tmp_path, asked("answers", "a"), asked("answers", "b"), asked("reports"))
    assert [each.text for each in found] == ["A3", "B3", "x"]
    last = found[-1]
    assert (last.input_tokens, last.output_tokens, last.reasoning) == (3, 4, '["a"]')
    assert last.reported == {"steps": 2.0, "cost": 0.5}
    assert min(last.latency, last.seconds) > 0
    assert found[0].reported is None


@pytest.mark.parametrize("provider", RUN)
def test_an_agent_is_given_the_whole_message(provider, server, tmp_path):
    model = reference(provider, server, params={"k": 3}, limits={"tokens": 9})
    (found,) = answers(model, tmp_path, asked("tells", "a", more=[1]))
    assert json.loads(found.text) == {
        "example": {"act": "tells", "input": "a", "more": [1]},
        "params": {"k": 3},
        "sampling": Sampling().as_json(),
        "seed": 7,
        "limits": {"tokens": 9},
    }


@pytest.mark.parametrize("provider", RUN)
def test_a_failure_is_that_of_its_example_alone(provider, server, tmp_path):
    model = reference(provider, server, retries=0)
    failed, null, negative, found = answers(
        model, tmp_path, asked("fails"), asked("null"), asked("negative"), asked("answers")
    )
    assert found.text == "HI"
    assert (failed.reason, "no luck" in failed.detail) == ("agent_failed", True)
    assert null.reason == negative.reason == "bad_reply"
    if provider == "command":
        assert failed.spent.reported == {"cost": 0.25}
        assert failed.detail == "the command ended with exit code 3: no luck"


@pytest.mark.parametrize("provider", ["http", "python"])  # of a command, Python's own start takes time
def test_a_run_that_hangs_is_ended_and_the_others_are_answered(provider, server, tmp_path):
    model = reference(provider, server, timeout=3.0, concurrency=3)
    hung, found, again = answers(
        model, tmp_path, asked("hangs"), asked("answers", "a"), asked("answers", "b")
    )
    assert (hung.reason, found.text, again.text) == ("timed_out", "A", "B")
    assert "within 3 s" in hung.detail


@pytest.fixture
def standing_clock(monkeypatch):
    """A clock that is an hour ahead at each look, as it is for a process that was stopped."""
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(calls, "time", SimpleNamespace(monotonic=lambda: next(hours)))


@pytest.mark.parametrize("provider", RUN)
def test_time_in_which_winnow_was_stopped_is_not_the_agents(provider, server, tmp_path, standing_clock):
    (found,) = answers(reference(provider, server, timeout=3600), tmp_path, asked("answers"))
    assert found.text == "HI"


def test_time_in_which_an_async_function_was_stopped_is_not_its_own(standing_clock):
    async def answer(example):
        await asyncio.sleep(0.01)
        return example

    replies = SimpleQueue()
    link = SimpleNamespace(send=replies.put)
    runner = python_agents._Runner(link, answer, python_agents.arguments_of(answer), {"timeout": 3600})
    runner.begin(1, {"example": "HI"})
    assert replies.get(timeout=PATIENCE_S) == {"number": 1, "reply": "HI"}


def test_a_stop_counts_as_a_few_steps(standing_clock):
    patience = Patience(3.0)
    assert [patience.step() > 0 for _ in range(4)] == [True, True, False, False]


OWN_SESSIONS = f"""
import subprocess, time
sleeps = "import os, time; open('children', 'a').write(str(os.getpid()) + chr(32)); time.sleep(600)"
python = [{sys.executable!r}, "-c"]
starts = f"import subprocess; subprocess.Popen({{[*python, sleeps]}}, start_new_session=True); "
subprocess.Popen([*python, starts + sleeps], start_new_session=True)
time.sleep(600)
"""
"""A program whose child leads a session, and whose child's child leads another."""


def kept(folder):
    """Process ids in the file of children that a program has written."""
    children = folder / "children"
    return children.read_text().rpartition(" ")[0].split() if children.exists() else []


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path):
    program = "import os, time; child = os.fork(); "
    program += "child and open('children', 'w').write(f'{os.getpid()} {child} '); time.sleep(600)"
    with running(reference("command", command=[sys.executable, "-c", program]), tmp_path) as engine:
        process = engine._caller._started()
        until(
            lambda: (tmp_path / "children").exists() and (tmp_path / "children").read_text().count(" ") == 2
        )
        assert not _Run(process, b"{}").within(Patience(0.0))
        engine._caller._end(process)
    until(lambda: all(map(gone, (tmp_path / "children").read_text().split())))


def test_a_child_of_a_command_that_leads_its_own_session_is_ended_too(tmp_path):
    with running(reference("command", command=[sys.executable, "-c", OWN_SESSIONS]), tmp_path) as engine:
        process = engine._caller._started()
        until(lambda: len(kept(tmp_path)) == 2)
        assert {os.getsid(int(each)) for each in kept(tmp_path)} == set(map(int, kept(tmp_path)))
        engine._caller._end(process)
        until(lambda: all(map(gone, kept(tmp_path))))


def test_closing_ends_children_that_lead_their_own_session(tmp_path):
    with running(reference("command", command=[sys.executable, "-c", OWN_SESSIONS]), tmp_path) as engine:
        process = engine._caller._started()
        until(lambda: len(kept(tmp_path)) == 2)
        closing = threading.Thread(target=engine.close)
        closing.start()
        until(lambda: all(map(gone, kept(tmp_path))))
        engine._caller._end(process)
        closing.join(PATIENCE_S)


def test_a_command_that_hangs_has_timed_out(tmp_path):
    model = reference("command", command=["sleep", "600"], timeout=0.01)
    (hung,) = answers(model, tmp_path, asked("x"))
    assert (hung.reason, hung.detail) == ("timed_out", "the command did not end within 0.01 s")


def test_closing_ends_what_runs(tmp_path):
    with running(reference("command"), tmp_path) as engine:
        found = []

        def ask():
            try:
                engine.generate([asked("hangs")])
            except EngineDied as error:
                found.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        until((tmp_path / "children").exists)
        engine.close()
        thread.join(PATIENCE_S)
    assert len(found) == 1
    until(lambda: all(map(gone, (tmp_path / "children").read_text().split())))


@pytest.mark.parametrize("provider", RUN)
def test_empty_outputs_can_stand_for_failures(provider, server, tmp_path):
    model = reference(provider, server, retries=0, on_failure="empty")
    (found,) = answers(model, tmp_path, asked("fails"))
    assert isinstance(found, Completion)
    assert found.text == ""
    assert found.reasoning.startswith("agent_failed: ")


@pytest.mark.parametrize(
    ("provider", "retry_on"), [("command", [3]), ("http", [500]), ("python", ["OSError"])]
)
def test_failures_are_tried_again_where_the_file_says_so(provider, retry_on, server, tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FIRST_DELAY", 0.0)
    tried = {"retry_on": retry_on, "retries": 2}
    (failed,) = answers(reference(provider, server, **tried), tmp_path, asked("fails"))
    assert failed.detail.endswith("(after 3 attempts)")
    if provider == "command":  # each of them cost something
        assert failed.spent.reported == {"cost": 0.75}
    (failed,) = answers(reference(provider, server, **(tried | {"retry_on": []})), tmp_path, asked("fails"))
    assert "attempts" not in failed.detail


@pytest.mark.parametrize(
    ("asked_for", "seconds"),
    [("7", 7.0), ("0.25", 0.25), ("1e9", 60.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 60.0), ("soon", None)],
)
def test_an_endpoint_says_when_to_ask_again_in_seconds_or_by_a_date(asked_for, seconds, server, tmp_path):
    server.script = (503, {"retry-after": asked_for}, "busy")
    with running(reference("http", server), tmp_path) as engine, pytest.raises(CallFailed) as failed:
        engine._caller.answer({**json.loads(asked("answers").prompt), "params": {}})
    assert failed.value.wait == seconds


@pytest.mark.parametrize("on_failure", ["unscored", "empty"])
def test_what_all_attempts_took_together_is_bounded(on_failure, tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FIRST_DELAY", 0.0)
    most = {"usage": {"input_tokens": 2**26 - 1, "output_tokens": 2**26 - 1}, "cost": 1e18}
    with endpoint((500, {}, most)) as server:
        model = reference("http", server, retries=2, on_failure=on_failure)
        (found,) = answers(model, tmp_path, asked("answers"))
    took = found if on_failure == "empty" else found.spent
    assert took.input_tokens == took.output_tokens == 2**26 - 1
    assert took.reported == {"cost": 3e18}


def test_a_run_may_not_take_more_than_its_limits(tmp_path):
    for limits, reason in (
        ({"tokens": 6}, "over_limit"),
        ({"cost": 0.4}, "over_limit"),
        ({"tokens": 7, "cost": 0.5}, None),
    ):
        (found,) = answers(reference("python", limits=limits), tmp_path, asked("reports"))
        assert getattr(found, "reason", None) == reason
        assert (found.spent if reason else found).reported["cost"] == 0.5


def test_a_run_without_a_cost_is_refused_where_a_limit_needs_it(tmp_path):
    model = reference("python")
    needs = ModelRef(
        name="agent", provider="python", model="agent", setup={**model.setup, kit.NEEDS_COST: True}
    )
    silent, told = answers(needs, tmp_path, asked("answers"), asked("reports"))
    assert silent.reason == "no_cost"
    assert "execution.prices.agent" in silent.detail
    assert told.text == "x"


COUNTED = """
import threading, time
lock, now, most = threading.Lock(), 0, 0
def answer(example):
    global now, most
    with lock:
        now += 1
        most = max(most, now)
    time.sleep(0.05)
    with lock:
        now -= 1
    return str(most)
"""


@pytest.mark.parametrize("concurrency", [1, 5])
def test_so_many_run_at_once(concurrency, tmp_path):
    (tmp_path / "counted.py").write_text(COUNTED)
    model = reference("python", function="counted.py:answer", concurrency=concurrency)
    found = answers(model, tmp_path, *(asked("x", str(number)) for number in range(15)))
    assert max(int(each.text) for each in found) == concurrency


def test_combinations_of_params_share_their_seats(tmp_path):
    models = [reference("python", params={"k": k}, concurrency=2) for k in (1, 2)]
    assert kit.seats_key(models[0]) == kit.seats_key(models[1])
    assert kit.seats_key(models[0]) != kit.seats_key(reference("python", params={"k": 1}, concurrency=3))


def test_answers_are_told_as_they_come(tmp_path):
    (tmp_path / "waits.py").write_text(
        "import time, pathlib\n"
        "def answer(example):\n"
        "    while example['input'] == 'b' and not pathlib.Path('go').exists():\n"
        "        time.sleep(0.01)\n"
        "    return example['input']\n"
    )
    came = []

    def take(place, answer):
        came.append((place, answer.text))
        (tmp_path / "go").touch()

    with running(reference("python", function="waits.py:answer"), tmp_path) as engine:
        found = engine.generate_each([asked("x", "b"), asked("x", "a")], take)
    assert came == [(1, "a"), (0, "b")]
    assert [each.text for each in found] == ["b", "a"]


ASYNC = """
import asyncio
async def answer(example):
    if example["input"] == "hang":
        await asyncio.sleep(600)
    await asyncio.sleep(0)
    return example["input"]
"""


def test_a_function_may_be_async(tmp_path):
    (tmp_path / "async_agent.py").write_text(ASYNC)
    model = reference("python", function="async_agent.py:answer", timeout=0.5)
    hung, found = answers(model, tmp_path, asked("x", "hang"), asked("x", "a"))
    assert (hung.reason, found.text) == ("timed_out", "a")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def answer(example): import os; os._exit(3)", "ended its process: it ended with exit code 3"),
        ("def answer(example): return object()", "it returned a object, which is not JSON"),
        ("def answer(example, other): return ''", "its parameter 'other' is not a field of the example"),
        ("def answer(example): raise SystemExit(1)", "the function raised SystemExit"),
    ],
)
def test_what_a_function_does_is_said(source, said, tmp_path):
    (tmp_path / "odd.py").write_text(source)
    (found,) = answers(reference("python", function="odd.py:answer"), tmp_path, asked("x"))
    assert (found.reason, said in found.detail) == ("agent_failed", True), found.detail


def test_a_function_is_given_the_fields_that_its_parameters_name(tmp_path):
    (tmp_path / "named.py").write_text("def answer(input, act, k=5): return f'{input} {act} {k}'")
    (tmp_path / "one.py").write_text("def answer(row): return row['act']")
    assert answers(reference("python", function="named.py:answer"), tmp_path, asked("x"))[0].text == "hi x 5"
    assert answers(reference("python", function="one.py:answer"), tmp_path, asked("x"))[0].text == "x"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_like_it\ndef answer(example): ...", "ModuleNotFoundError"),
        ("def answer(): ...", "it takes no argument"),
        ("def answer(example, *, k): ...", "is keyword-only"),
    ],
)
def test_a_file_that_cannot_be_used_fails_the_agent(source, said, tmp_path):
    (tmp_path / "broken.py").write_text(source)
    with pytest.raises(EngineLoadFailed, match=said):
        answers(reference("python", function="broken.py:answer"), tmp_path, asked("x"))


@pytest.mark.parametrize(
    ("provider", "keys", "said"),
    [
        ("command", {"command": ["no-such-program"]}, "there is no program 'no-such-program'"),
        ("command", {"env": ["NO_SUCH_KEY"]}, "NO_SUCH_KEY is not set"),
        ("http", {"headers": {"Authorization": "Bearer $NO_SUCH_KEY"}}, "NO_SUCH_KEY is not set"),
        ("python", {"function": "function.py:other"}, "unknown function of function.py 'other'"),
        ("python", {"function": "elsewhere.py:answer"}, "there is no Python file 'elsewhere.py'"),
    ],
)
def test_what_cannot_run_here_is_said(provider, keys, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        settings_of(provider, reference(provider, **keys).setup).check()
    with pytest.raises(EngineLoadFailed, match=said):
        answers(reference(provider, **keys), tmp_path, asked("x"))


def test_a_command_sees_the_named_variables_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN_KEY", "sesame")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "env.py").write_text("import json, os; print(json.dumps({'output': dict(os.environ)}))")
    model = reference("command", command=[sys.executable, "env.py"], env=["$SEEN_KEY"])
    (found,) = answers(model, tmp_path, asked("x"))
    seen = json.loads(found.text)
    assert seen["SEEN_KEY"] == "sesame"
    assert "OPENAI_API_KEY" not in seen
    assert seen.keys() >= {"PATH"}


def test_values_of_variables_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN_KEY", "sesame")
    code = "import os, sys; print('bad key', os.environ['SEEN_KEY'], file=sys.stderr); sys.exit(1)"
    (tmp_path / "env.py").write_text(code)
    model = reference("command", command=[sys.executable, "env.py"], env=["SEEN_KEY"])
    (found,) = answers(model, tmp_path, asked("x"))
    assert found.detail == "the command ended with exit code 1: bad key $SEEN_KEY"


def test_no_shell_reads_the_command(tmp_path):
    model = reference(
        "command", command=[sys.executable, "-c", "import sys; print(sys.argv[1:])", "$HOME; *"]
    )
    (found,) = answers(model, tmp_path, asked("x"))
    assert found.text == "['$HOME; *']"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('x' * (5 << 20))", "bad_reply"),
        ("import sys; sys.stderr.write('x' * (5 << 20)); print('y')", None),
        ("import sys; sys.stdin.close(); print('y')", None),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "bad_reply"),
        ("import os; os.kill(os.getpid(), 9)", "agent_failed"),
        ("import subprocess; subprocess.Popen(['sleep', '60']); print('y', flush=True)", None),
    ],
)
def test_whatever_a_command_writes_is_bounded(code, reason, tmp_path):
    model = reference("command", command=[sys.executable, "-c", code], timeout=PATIENCE_S)
    (found,) = answers(model, tmp_path, asked("x", "long" * 100_000))
    assert getattr(found, "reason", None) == reason
    if reason is None:
        assert found.text == "y"


def test_a_text_is_no_reply_unless_it_has_an_output():
    assert json_or_text(b'{"a": 1}\n') == '{"a": 1}'
    assert json_or_text(b'{"output": 1}\n') == {"output": 1}
    assert json_or_text(b"two\nlines\n") == "two\nlines"
    assert read_reply(json_or_text(b'{"output": {"b": 1, "a": 2}}')).output == '{"a":2,"b":1}'
    assert len(read_reply({"output": "x", "trace": "y" * 100_000}).trace) == MOST_TRACE


DEEP = []
for _ in range(100):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "said",
    [
        {"output": "x", "usage": 3},
        {"output": "x", "usage": {"input_tokens": -1}},
        {"output": "x", "usage": {"input_tokens": True}},
        {"output": "x", "cost": "free"},
        {"output": "x", "cost": float("nan")},
        {"output": "x", "cost": 10**400},
        {"output": "x", "cost": 1e308},
        {"output": "x", "metrics": {"a": -1e308}},
        {"output": "x", "metrics": [1]},
        {"output": "x", "metrics": {"cost": 1}},
        {"output": "x", "metrics": {"": 1}},
        {"output": "x", "metrics": {"a": "b"}},
        {"output": "x", "metrics": {str(number): 1 for number in range(101)}},
        {"output": DEEP},
        {"output": None},
        None,
    ],
)
def test_an_odd_reply_is_refused(said):
    with pytest.raises(ValueError, match=r"must be|needs a name|brackets|is null"):
        read_reply(said)


def test_a_key_goes_to_the_endpoint_in_its_header(server, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_KEY", "sesame")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = reference(
        "http",
        server,
        url=f"{server.url}/{{{{ input }}}}?k={{{{ params.k }}}}",
        headers={"Authorization": "Bearer $AGENT_KEY"},
        params={"k": "a b"},
    )
    answers(model, tmp_path, asked("answers", "a/b"))
    ((path, headers, body),) = server.seen
    assert path == "/x/a%2Fb?k=a%20b"
    assert headers["authorization"] == "Bearer sesame"
    assert "sk-secret" not in str(headers)
    assert body["example"]["input"] == "a/b"


def test_the_body_and_the_places_in_the_answer_are_those_of_the_file(tmp_path):
    said = {"choices": [{"text": "42"}], "usage": {"prompt_tokens": 1}, "bill": {"usd": 2}, "n": {"steps": 3}}
    with endpoint((200, {}, said)) as server:
        model = reference(
            "http",
            server,
            body={
                "example": {"act": "reports"},
                "q": "{{ input }}",
                "k": ["{{params.k}}"],
                "t": "{{ seed }}: {{input}}",
            },
            params={"k": 3},
            output="/choices/0/text",
            usage="/usage",
            cost="/bill/usd",
            metrics="/n",
        )
        (found,) = answers(model, tmp_path, asked("answers"))
        assert {key: server.seen[0][2][key] for key in "qkt"} == {"q": "hi", "k": [3], "t": "7: hi"}
    assert (found.text, found.input_tokens, found.reported) == ("42", 1, {"steps": 3.0, "cost": 2.0})


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        ((302, {"location": "http://127.0.0.1:9/"}, ""), "agent_failed", "status 302"),
        ((200, {"content-encoding": "gzip"}, "x"), "bad_reply", "compressed"),
        ((200, {}, "x" * (5 << 20)), "bad_reply", "more than 4194304 bytes"),
        ((404, {}, "nothing here"), "agent_failed", "status 404: nothing here"),
        ((200, {}, '{"output": null}'), "bad_reply", "null"),
    ],
)
def test_whatever_an_endpoint_sends_is_bounded(script, reason, said, tmp_path):
    with endpoint(script) as server:
        (found,) = answers(reference("http", server, retries=0), tmp_path, asked("answers"))
    assert isinstance(found, GenerationFailure)
    assert (found.reason, said in found.detail) == (reason, True), found.detail


def test_an_endpoint_that_refuses_the_key_fails_the_agent(tmp_path):
    with (
        endpoint((401, {}, "who are you?")) as server,
        pytest.raises(EngineLoadFailed, match="correct headers"),
    ):
        answers(reference("http", server), tmp_path, asked("answers"))


def test_an_endpoint_that_cannot_be_reached_says_nothing_of_the_example(tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FIRST_DELAY", 0.0)
    with pytest.raises(EngineDied, match=r"cannot be reached .*after 3 attempts"):
        answers(reference("http"), tmp_path, asked("answers"))


def test_what_was_answered_before_the_end_is_kept(server, tmp_path, monkeypatch):
    monkeypatch.setattr(kit, "FIRST_DELAY", 0.0)
    model = reference("http", server, concurrency=1)
    with running(model, tmp_path) as engine:
        assert engine.generate([asked("answers")])[0].text == "HI"
        server.script = (401, {}, "")  # after an answer, one example's own affair
        (failed,) = engine.generate([asked("answers")])
        assert failed.reason == "agent_failed"
        caller, calls = engine._caller, []

        def second_dies(message):
            calls.append(message)
            if len(calls) > 1:
                raise EngineDied("agent", "gone")
            return "first"

        monkeypatch.setattr(caller, "answer", second_dies)
        with pytest.raises(BatchUnfinished) as found:
            engine.generate([asked("answers", "a"), asked("answers", "b")])
        assert [each.text for each in found.value.answered.values()] == ["first"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"headers": {"Authorization": "Bearer sk-123"}}, "holds a key"),
        ({"headers": {"Host": "x"}}, "cannot be set"),
        ({"headers": {"a b": "x"}}, "cannot be set"),
        ({"url": "ftp://x"}, "must be the URL"),
        ({"url": "http://{{ host }}/x"}, "must be the URL"),
        ({"url": "http://me:pw@host/x"}, "must have no user"),
        ({"url": "http://host/x?key=$KEY"}, "must have no user"),
        ({"cost": "/cost"}, "add output"),
        ({"output": "cost"}, "JSON pointer"),
        ({"method": "GET", "body": {}}, "a GET has no body"),
    ],
)
def test_odd_keys_of_an_endpoint_are_refused(keys, said):
    with pytest.raises(ValueError, match=said):
        reference("http", **keys)


def test_pointers_and_names_find_values():
    value = {"a/b": [{"~": 1}], "c": None}
    assert pointed(value, "/a~1b/0/~0") == (1, True)
    assert pointed(value, "/c") == (None, True)
    assert pointed(value, "") == (value, True)
    for missing in ("/d", "/a~1b/1", "/a~1b/x", "/c/d"):
        assert pointed(value, missing) == (None, False)
    message = {"example": {"q": "x", "a.b": 1, "meta": {"z": 2}}, "params": {"k": 3}, "seed": 7}
    for name, found in {"q": "x", "a.b": 1, "meta.z": 2, "example.q": "x", "params.k": 3, "seed": 7}.items():
        assert value_at(name, message) == found
    with pytest.raises(CallFailed, match="the request needs 'other'"):
        value_at("other", message)


def test_the_identity_is_what_answers_depend_on(tmp_path):
    (tmp_path / "helper.py").write_text("x = 1")
    (tmp_path / "function.py").write_text("import helper\n" + FUNCTION)
    (tmp_path / "agent.py").write_text("import helper\n" + PROGRAM)
    for provider in ("command", "python"):
        same = [
            fingerprint_model(reference(provider, **keys)) for keys in ({}, {"timeout": 3.0, "retries": 7})
        ]
        assert same[0] == same[1]
        changed = [{"params": {"k": 1}}, {"version": "2"}, {"limits": {"tokens": 3}}, {"on_failure": "empty"}]
        others = {fingerprint_model(reference(provider, **keys)) for keys in changed}
        assert len(others - {same[0]}) == 4
        (tmp_path / "helper.py").write_text(f"x = {provider!r}")
        assert fingerprint_model(reference(provider)) != same[0]
    with_args = [reference("command", command=[sys.executable, "agent.py", each]) for each in ("a", "b")]
    assert fingerprint_model(with_args[0]) != fingerprint_model(with_args[1])
    urls = [reference("http", url=f"http://host/{each}") for each in "ab"]
    assert fingerprint_model(urls[0]) != fingerprint_model(urls[1])


def test_a_module_that_python_runs_is_part_of_the_identity(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "run.py").write_text("print(1)")
    model = reference("command", command=["python", "-m", "pack.run"])
    before = fingerprint_model(model)
    (tmp_path / "pack" / "run.py").write_text("print(2)")
    assert fingerprint_model(model) != before


def test_what_is_compiled_beside_a_source_is_not_run(tmp_path):
    (tmp_path / "helper.py").write_text("SAID = 'source'\n")
    (tmp_path / "agent.py").write_text("import helper\nprint(helper.SAID)\n")
    (tmp_path / "other.py").write_text("SAID = 'compiled'\n")
    compiled = importlib.util.cache_from_source(str(tmp_path / "helper.py"))
    cache = f"{tmp_path}/cache{compiled.replace('/__pycache__', '')}"
    for place in (compiled, cache):
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(tmp_path / "other.py"), cfile=place, invalidation_mode=mode)
    for options in ([], ["-E"], ["-sE"], ["-X", f"pycache_prefix={tmp_path}/cache"]):
        model = reference("command", command=[sys.executable, *options, "agent.py"])
        with running(model, tmp_path) as engine:
            own = engine._caller._compiled.name
            assert engine.generate([asked("x")])[0].text == "source"
            assert stat.S_IMODE(os.stat(own).st_mode) == 0o700
        assert not os.path.exists(own)


def code(*command):
    return settings_of("command", {"command": list(command)}).code()


def to_allow(tmp_path, *command):
    ((_, act),) = settings_of("command", {"command": list(command)}).acts(tmp_path)
    return act.digests


def test_a_program_is_the_systems_by_its_folder_and_not_by_its_name(tmp_path, monkeypatch):
    assert list(code(sys.executable, "agent.py")) == ["agent.py:agent"]
    (tmp_path / "python3").write_text("#!/bin/sh\n")
    (tmp_path / "python3").chmod(0o700)
    before = code("./python3", "agent.py")
    assert list(before) == ["./python3", "agent.py:agent"]
    (tmp_path / "python3").write_text("#!/bin/sh\necho other\n")
    assert code("./python3", "agent.py") != before
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(code("python3", "agent.py")) == ["python3", "agent.py:agent"]
    (tmp_path / "python3").unlink()
    (tmp_path / "python3").symlink_to(sys.executable)
    assert list(code("./python3", "agent.py")) == ["agent.py:agent"]


@pytest.mark.parametrize("name", ["bisect.py", "certifi.py", "bisect.pyc", "certifi/__init__.py"])
@pytest.mark.parametrize("command", [["agent.py"], ["-m", "agent"], ["-magent"], ["-m", "json.tool"]])
def test_a_new_module_that_may_take_a_librarys_place_has_to_be_allowed(tmp_path, name, command):
    before, known = to_allow(tmp_path, "python3", *command), code("python3", *command)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    now = to_allow(tmp_path, "python3", *command)
    module = name.partition(".")[0].partition("/")[0]
    assert now.keys() - before.keys() == {f"{command[-1]}:{module}"}
    assert code("python3", *command) == known  # another file of the user's makes no output anew
    path.write_text("changed")
    assert (to_allow(tmp_path, "python3", *command) != now) == (module == "bisect")


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["python3", "-m", "pkg"], "pkg/__main__.py"),
        (["python3", "-m", "pkg"], "pkg/__init__.py"),
        (["python3", "-m", "pkg.a"], "pkg/__init__.py"),
        (["python3", "-m", "pkg.a"], "pkg/a.py"),
        (["python3", "-m", "pkg.a"], "pkg/near.py"),
        (["python3", "-m", "pkg.a"], "helper.py"),
        (["python3", "-um", "pkg.a"], "pkg/a.py"),
        (["python3", "-mpkg.a"], "pkg/a.py"),
        (["python3", "-umpkg"], "pkg/__main__.py"),
        (["python3", "-m", "compiled"], "compiled.pyc"),
        (["env", "python3", "-mpkg"], "pkg/__init__.py"),
        (["python3", "-W", "ignore", "pkg"], "pkg/__main__.py"),
        (["python3", "pkg"], "pkg/near.py"),
        (["python3", "tool", "x"], "helper.py"),
        (["./tool"], "tool"),
        (["./tool"], "helper.py"),
    ],
)
def test_all_that_python_runs_of_the_folder_is_looked_at(tmp_path, command, file):
    (tmp_path / "pkg").mkdir()
    for name, content in {
        "pkg/__init__.py": "",
        "pkg/__main__.py": "import near",
        "pkg/near.py": "",
        "pkg/a.py": "from . import near\nimport helper",
        "helper.py": "",
        "compiled.pyc": "",
        "tool": "#!/usr/bin/env python3\nimport helper",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "tool").chmod(0o700)
    before, allowed = code(*command), to_allow(tmp_path, *command)
    (tmp_path / file).write_text(f"{(tmp_path / file).read_text()}\n# changed")
    assert code(*command).keys() == before.keys()
    assert code(*command) != before
    assert to_allow(tmp_path, *command) != allowed


LINK = "-> "
"""Begins the content that stands for a link."""


def put(tmp_path, files):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if content.startswith(LINK):
            path.symlink_to(content.removeprefix(LINK))
        else:
            path.write_text(content)


@pytest.mark.parametrize(
    ("command", "files", "changed"),
    [
        (["./tool", "notes"], {"tool": "-> /bin/cat", "notes": "import x"}, {"tool": "-> /bin/sh"}),
        (["./python3", "x"], {"python3": f"-> {sys.executable}", "x": ""}, {"pyvenv.cfg": "home = evil"}),
        (["bin/python", "x"], {"bin/python": f"-> {sys.executable}", "x": ""}, {"pyvenv.cfg": "home = a"}),
        (
            ["bin/python", "x"],
            {"bin/python": f"-> {sys.executable}", "x": "", "lib/python3.11/site-packages/x.pth": ""},
            {"lib/python3.11/site-packages/x.pth": "import os"},
        ),
        (
            ["./tool", "x"],
            {"tool": f"-> {sys.executable}", "x": "import near", "near.py": ""},
            {"near.py": "1"},
        ),
        (["./run"], {"run": "#!./made\n", "made": "#!/bin/sh"}, {"made": "#!/bin/sh\necho"}),
        (["./run"], {"run": "#!/usr/bin/env -S ./made -x\n", "made": "#!/bin/sh"}, {"made": "#!/bin/cat"}),
        (["./run"], {"run": "#!./a\n", "a": "#!./b\n", "b": "#!/bin/sh"}, {"b": "#!/bin/sh\necho"}),
        (["./run"], {"run": "#!./made\r\n", "made\r": "#!/bin/sh"}, {"made\r": "#!/bin/cat"}),
        (["./run"], {"run": "#!./made\n", "made": f"-> {sys.executable}"}, {"pyvenv.cfg": "home = evil"}),
        (["sh", "run"], {"run": "echo"}, {"run": "-> /dev/stdin"}),
        (
            ["python3", "--check-hash-based-pycs", "never", "x"],
            {"x": "import near", "near.py": ""},
            {"near.py": "1"},
        ),
        (["python3.13t", "x"], {"x": "import near", "near.py": ""}, {"near.py": "1"}),
        *(
            (
                ["python3", "-m", "p"],
                {"p/__init__.py": "", "p/__main__.py": imports, "p/near.py": ""},
                {"p/near.py": "1"},
            )
            for imports in (
                "from importlib import import_module as get\nget('p.near')",
                "import importlib\nimportlib.import_module(name='p.near')",
                "import importlib\nimportlib.import_module('.near', __package__)",
            )
        ),
        (
            ["python3", "x"],
            {"x": "from p import *", "p/__init__.py": "__all__ = ['near']", "p/near.py": ""},
            {"p/near.py": "1"},
        ),
    ],
)  # fmt: skip
def test_what_else_makes_other_code_run_has_to_be_allowed(tmp_path, command, files, changed):
    put(tmp_path, files)
    before = to_allow(tmp_path, *command)
    assert before == to_allow(tmp_path, *command)
    put(tmp_path, changed)
    assert to_allow(tmp_path, *command) != before


def test_a_program_of_a_working_folder_within_a_systems_folder_is_no_program_of_the_system(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(program_files, "SYSTEM", (str(tmp_path), "/bin", "/usr"))
    put(tmp_path, {"src/run": "#!/bin/sh"})
    monkeypatch.chdir(tmp_path / "src")
    assert list(code("./run")) == ["./run"]
    assert code("cat") == {}


def test_code_that_is_changed_while_a_campaign_runs_ends_it(tmp_path):
    program = "import sys, time; sys.stdin.read(); print(1)\n"
    (tmp_path / "agent.py").write_text(program)
    model = reference("command", command=["python3", "agent.py", "seen"], concurrency=1)
    with running(model, tmp_path) as engine:
        (tmp_path / "seen").write_text("data that the program may write")
        assert engine.generate([asked("x")])[0].text == "1"
        until(lambda: engine._caller._next_look < time.monotonic())
        (tmp_path / "agent.py").write_text(program + "# changed")
        with pytest.raises(NotAllowed, match="was changed while the campaign ran"):
            engine.generate([asked("x")])
        (tmp_path / "agent.py").write_text(program)
        with pytest.raises(NotAllowed, match="was changed while the campaign ran"):
            engine.generate([asked("x")])


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({"run": "-> /bin/cat"}, {"run": "-> /bin/echo"}),
        ({"run": "#!./made\n", "made": "-> /bin/cat"}, {"made": "-> /bin/echo"}),
        ({"run": "#!./a\n", "a": "#!./b\n", "b": "-> /bin/cat"}, {"b": "-> /bin/echo"}),
    ],
)
def test_what_a_program_is_and_its_interpreters_are_looked_at_between_runs(tmp_path, files, changed):
    put(tmp_path, files)
    before = program_files.code_that_runs(["./run", "notes"], tmp_path)
    assert program_files.code_that_runs(["./run", "notes"], tmp_path) == before
    put(tmp_path, changed)
    assert program_files.code_that_runs(["./run", "notes"], tmp_path) != before


def test_interpreters_of_each_other_are_looked_at_once(tmp_path):
    put(tmp_path, {"a": "#!./b\n", "b": "#!./a\n"})
    assert program_files.code_that_runs(["./a"], tmp_path).keys() == {"./a", "./b"}


def test_a_function_in_the_home_folder_is_the_file_that_is_asked_for(tmp_path, monkeypatch):
    home = tmp_path / "home"
    put(home, {"own.py": FUNCTION})
    monkeypatch.setenv("HOME", str(home))
    ((_, act),) = settings_of("python", {"function": "~/own.py:answer"}).acts(tmp_path)
    assert str(home / "own.py") in act.text
    assert list(act.digests) == ["own"]


def test_arguments_that_are_no_code_are_known_as_they_are(tmp_path):
    (tmp_path / "data.txt").write_text("import helper")
    (tmp_path / "helper.py").write_text("")
    assert list(code("cat", "data.txt", "-m", "small", "-max", ".")) == ["data.txt"]
    assert list(to_allow(tmp_path, "cat", "data.txt", "-m", "small")) == ["data.txt"]
    assert code("sh", "-c", "python3 agent.py") == {}
    assert code("python3", "-c", "import agent") == {}
    (tmp_path / "deep").write_text("-" * 100_000 + "1")
    assert list(code("python3", "deep")) == ["deep:deep"]


def test_nothing_runs_that_nobody_has_allowed(tmp_path):
    for provider in ("command", "python"):
        asked_of = []
        ask_of(lambda act, digests, asked_of=asked_of: asked_of.append((act, digests)))
        try:
            with pytest.raises(NotAllowed, match="which is not permitted"):
                answers(reference(provider), tmp_path, asked("answers"))
        finally:
            ask_of(None)
        ((act, digests),) = asked_of
        assert str(tmp_path) in act
        assert digests


def test_programs_end_with_the_process_that_runs_them(tmp_path):
    """However it ends: a kill leaves nobody to end them."""
    (tmp_path / "parent.py").write_text(
        "import sys, json\n"
        "from pathlib import Path\n"
        "from winnow.tasks.engines.agents.command import Caller, Settings\n"
        f"settings = Settings(command=[{sys.executable!r}, 'agent.py'])\n"
        "Caller('agent', settings, Path('.')).answer({'example': {'act': 'hangs'}})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(next(p for p in sys.path if p.endswith(".package")))}
    parent = subprocess.Popen([sys.executable, "parent.py"], env=environment)
    until((tmp_path / "children").exists)
    until(lambda: len((tmp_path / "children").read_text().split()) == 2)
    parent.kill()
    parent.wait()
    until(lambda: all(map(gone, (tmp_path / "children").read_text().split())))


def test_a_value_that_begins_another_and_one_at_the_end_of_what_is_shown_are_hidden():
    from winnow.tasks.engines.agents.kit.calls import SHOWN, shown

    hidden = {"SHORT": "abcd", "LONG": "abcdTOPSECRET"}
    assert shown("x abcdTOPSECRET abcd", hidden) == "x $LONG $SHORT"
    said = "y" * (SHOWN - 6) + "abcdTOPSECRET"
    for is_beginning in (True, False):
        assert "abcd" not in shown(said, hidden, is_beginning=is_beginning)


def test_a_value_within_which_a_text_was_cut_is_hidden():
    from winnow.tasks.engines.agents.kit.calls import shown

    value = "".join(f"{at:03x}" for at in range(1000))
    hidden = {"K": value, "L": "abcde"}
    assert shown(f"bad {value[:2000]}", hidden, is_beginning=True) == "bad $K"
    assert shown(f"{value[1000:]}{value} x", hidden) == "$K$K x"
    assert shown(value[100:], hidden) == shown(value[:-100], hidden) == "$K"
    assert shown("bcde cde x abcd", hidden) == "$L cde x $L"
    assert shown('a%2Fb%22c a\\/b\\"c YS9iImM=', {"K": 'a/b"c'}) == "$K $K $K="
    assert shown("", hidden) == ""


@pytest.mark.parametrize("lacks", [(), ("psutil",)])
def test_a_guard_ends_sessions_of_children_and_the_group_at_least(tmp_path, monkeypatch, lacks):
    monkeypatch.chdir(tmp_path)
    if lacks:  # as if the environment were removed while Winnow runs
        monkeypatch.setattr(orphans, "_ARGUMENTS", ("gone.py", "gone"))
    guard = orphans.OrphanGuard()
    program = start_process([sys.executable, "-c", OWN_SESSIONS])
    try:
        guard.watch(program.pid)
        until(lambda: len(kept(tmp_path)) == 2)
        guard.close()
        until(lambda: program.poll() is not None)
        if not lacks:
            until(lambda: all(map(gone, kept(tmp_path))))
    finally:
        for each in kept(tmp_path):
            with suppress(ProcessLookupError):
                os.kill(int(each), SIGKILL)
        end_process(program)
