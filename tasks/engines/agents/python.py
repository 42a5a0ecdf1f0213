"""Provider `python`: a Python function such as `file.py:answer`, run in a separate process.

    def answer(example, prompt=None, params=None):
        return {"output": f"It is {example['input']}.", "cost": 0.001}

Each parameter receives the value of its name: a field of the example, or else example, prompt, params,
sampling, seed or limits. A first parameter with any other name, and without a default, receives the example.
The function may be `async`. It returns a text, or a mapping with `output` and, if known, `usage`, `cost`,
`metrics` and `trace`.
"""

import asyncio
import inspect
import json
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

from winnow.algorithms.state.plugin_registry import in_words
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.text import in_home
from winnow.tasks.engines.agents.kit.calls import CallFailed, Patience
from winnow.tasks.engines.agents.kit.settings import AgentSettings
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.plugins.allowed_code import Act, act_of_function, digests_of
from winnow.tasks.plugins.python_files import import_function, locate_function, require_bound
from winnow.tasks.processes.child_process import log_file
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess
from winnow.tasks.processes.worker_side import ParentLink, run_worker

MODULE = "winnow.tasks.engines.agents.python"

START_SECONDS = 120.0
"""Maximum seconds for importing the file."""

GRACE = 1.0
"""Seconds in which an `async` function can end by itself after its time-out."""

MOST_BYTES = 8 << 20
"""Maximum bytes of a reply."""

SHOWN = 300


def _function(value: str) -> str:
    if not value.rpartition(":")[2].isidentifier() or ".py:" not in value:
        raise ValueError("must be FILE.py:FUNCTION")
    return value


class Settings(AgentSettings):
    """Keys of an entry with `provider: python`."""

    function: Annotated[str, Field(min_length=1), AfterValidator(_function)]
    """File and name of the function, such as agent.py:answer; sync or async."""
    retry_on: list[str] = Field(default=[])
    """Names of exceptions after which a run is tried again, such as TimeoutError."""

    @classmethod
    def from_text(cls, text: str) -> JsonObject:
        """See `AgentSettings`."""
        return {"function": text}

    @property
    def shown(self) -> str:
        """See `AgentSettings`."""
        return self.function

    def acts(self, folder: Path) -> Iterator[tuple[str, Act]]:
        """See `AgentSettings`."""
        file, _, function = self.function.rpartition(":")
        yield "function", act_of_function(folder / in_home(file), function)

    def code(self) -> Mapping[str, str]:
        """See `AgentSettings`."""
        return digests_of(locate_function(self.function)[0])

    def check(self) -> None:
        """See `AgentSettings`."""
        require_bound(*locate_function(self.function))


class Caller:
    """Call the function in a child process, which is replaced after a call hangs.

    Other calls in progress at that moment are answered before their process ends.

    Args:
        name: Name of the agent.
        settings: The agent's keys of the campaign's file.
        log_folder: Folder for the file with the function's printed output.
    """

    def __init__(self, name: str, settings: Settings, log_folder: Path) -> None:
        self._name, self._settings = name, settings
        file, function = locate_function(settings.function)
        self._setup = {
            "file": str(file),
            "function": function,
            "digests": dict(digests_of(file)),
            "timeout": settings.timeout,
        }
        self._log = log_file(log_folder, name)
        self._changed = threading.Lock()  # guards everything below
        self._process: _Process | None = None
        self._all: set[_Process] = set()
        self._closed = False

    def answer(self, message: JsonObject) -> object:
        """See `Caller`."""
        process = self._begun()
        try:
            reply = process.call(message, self._settings.timeout + GRACE)
        except TimeoutError:
            self._replace(process)
            raise self._timed_out() from None
        except WorkerEnded as error:
            self._replace(process)
            raise CallFailed(
                f"the function ended its process: {str(error).partition(';')[0]}", reason="agent_failed"
            ) from error
        finally:
            self._finished(process)
        if reply.get("timed_out"):
            raise self._timed_out()
        if "failed" in reply:
            kinds = set(reply["kinds"])
            raise CallFailed(
                f"the function raised {reply['failed']}", may_retry=bool(kinds & set(self._settings.retry_on))
            )
        return reply.get("reply")

    def close(self) -> None:
        """End the processes."""
        with self._changed:
            self._closed = True
            ended, self._process = list(self._all), None
            self._all.clear()
        for each in ended:
            each.kill()

    def _timed_out(self) -> CallFailed:
        return CallFailed(
            f"the function did not return within {self._settings.timeout:g} s", reason="timed_out"
        )

    def _begun(self) -> "_Process":
        with self._changed:
            if self._closed:
                raise EngineDied(self._name, "it was closed")
            if self._process is None:
                self._process = _Process(self._name, self._setup, self._log)
                self._all.add(self._process)
            self._process.users += 1
            return self._process

    def _replace(self, process: "_Process") -> None:
        """Make the next call start a new process."""
        with self._changed:
            process.is_left = True
            if self._process is process:
                self._process = None

    def _finished(self, process: "_Process") -> None:
        with self._changed:
            process.users -= 1
            is_over = process.is_left and not process.users and process in self._all
            if is_over:
                self._all.discard(process)
        if is_over:
            process.kill()


class _Process:
    """Child process that calls the function for several threads."""

    def __init__(self, name: str, setup: JsonObject, log: Path) -> None:
        self.users = 0
        self.is_left = False
        self._lock = threading.Lock()
        self._waiting: dict[int, SimpleQueue[JsonObject | WorkerEnded]] = {}
        self._numbers = 0
        self._ended: WorkerEnded | None = None
        self._worker = WorkerProcess(MODULE, log=log, environment={"PYTHONDONTWRITEBYTECODE": "1"})
        try:
            self._worker.send(setup)
            reply = self._worker.receive(START_SECONDS, lambda: MOST_BYTES)
        except (TimeoutError, WorkerEnded, ValueError) as error:
            self._worker.kill()
            why = str(error) or f"it was not imported within {START_SECONDS:g} s"
            raise EngineLoadFailed(name, f"{setup['file']}: {why}") from error
        if "failed" in reply:
            self._worker.kill()
            raise EngineLoadFailed(name, f"{setup['file']} cannot be imported: {reply['failed']}")
        threading.Thread(target=self._read, name=f"replies of {name}", daemon=True).start()

    def call(self, message: JsonObject, seconds: float) -> JsonObject:
        """Reply of the child to one message.

        Raises:
            TimeoutError: If no reply arrives in time.
            WorkerEnded: If the child ended.
        """
        arrived: SimpleQueue[JsonObject | WorkerEnded] = SimpleQueue()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            self._numbers += 1
            number = self._numbers
            self._waiting[number] = arrived
            self._worker.send({"number": number, "message": message})
        found, patience = None, Patience(seconds)
        try:
            while found is None and (step := patience.step()):
                with suppress(Empty):
                    found = arrived.get(timeout=step)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if found is None:
            raise TimeoutError
        if isinstance(found, WorkerEnded):
            raise found
        return found

    def kill(self) -> None:
        """End the child immediately."""
        self._worker.kill()

    def _read(self) -> None:
        while True:
            try:
                reply = self._worker.receive(None, lambda: MOST_BYTES)
            except Exception as error:
                ended = error if isinstance(error, WorkerEnded) else WorkerEnded(str(error))
                with self._lock:
                    self._ended = ended
                    for each in self._waiting.values():
                        each.put(ended)
                return
            with self._lock:
                arrived = self._waiting.get(reply.get("number", 0))
            if arrived is not None:
                arrived.put(reply)


def serve(link: ParentLink) -> None:
    """Import the function named by the first message, and call it for each later message.

    Runs in the child; see `WorkerProcess`.
    """
    setup = link.receive()
    try:
        call = import_function(setup["file"], setup["function"], setup["digests"])
        arguments = arguments_of(call)
    except BaseException as error:
        traceback.print_exc()
        link.send({"failed": _words(error, setup["file"])})
        return
    link.send({"ready": True})
    runner = _Runner(link, call, arguments, setup)
    while not (message := link.receive()).get("close"):
        runner.begin(message["number"], message["message"])


class _Runner:
    """Call the function in threads, or in an event loop if it is `async`."""

    def __init__(
        self, link: ParentLink, call: Callable[..., object], arguments: "Arguments", setup: JsonView
    ) -> None:
        self._link, self._call, self._arguments, self._setup = link, call, arguments, setup
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        if inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__):
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def begin(self, number: int, message: JsonObject) -> None:
        """Start a call of the function; its result or error is sent when it ends."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._awaited(number, message), self._loop)
        else:
            threading.Thread(target=self._called, args=(number, message), daemon=True).start()

    def _called(self, number: int, message: JsonObject) -> None:
        try:
            self._reply(number, {"reply": self._call(*self._arguments(message))})
        except BaseException as error:
            self._failed(number, error)

    async def _awaited(self, number: int, message: JsonObject) -> None:
        try:
            call = cast("Coroutine[Any, Any, object]", self._call(*self._arguments(message)))
            running, patience = asyncio.ensure_future(call), Patience(self._setup["timeout"])
            while not running.done() and (seconds := patience.step()):
                await asyncio.wait({running}, timeout=seconds)
            if not running.done():
                running.cancel()
                await asyncio.wait({running})
                self._reply(number, {"timed_out": True})
                return
            self._reply(number, {"reply": running.result()})
        except BaseException as error:
            self._failed(number, error)

    def _failed(self, number: int, error: BaseException) -> None:
        kinds = [each.__name__ for each in type(error).__mro__]
        self._reply(number, {"failed": _words(error, self._setup["file"]), "kinds": kinds})

    def _reply(self, number: int, reply: JsonView) -> None:
        try:
            content = json.loads(json.dumps(reply, default=_plain))
            if len(json.dumps(content)) > MOST_BYTES // 2:
                raise ValueError(f"it returned more than {MOST_BYTES // 2} bytes")
        except (TypeError, ValueError, RecursionError) as error:
            content = {"failed": in_words(error), "kinds": [type(error).__name__]}
        with self._lock, suppress(OSError):
            self._link.send({"number": number, **content})


def _plain(value: object) -> object:
    """Convert a library's number, such as numpy's, to a Python number."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    raise TypeError(f"it returned a {type(value).__name__}, which is not JSON")


def _words(error: BaseException, file: str) -> str:
    places = [
        f" (line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file
    ]
    return f"{in_words(error)[:SHOWN]}{places[-1] if places else ''}"


Arguments = Callable[[JsonObject], list[object]]

MESSAGE = ("example", "prompt", "params", "sampling", "seed", "limits")
"""Parameter names that receive a part of the message."""


def arguments_of(call: Callable[..., object]) -> Arguments:
    """Function that returns a call's arguments for a message, by the names of the parameters.

    Raises:
        TypeError: If the function takes no argument, or a keyword-only parameter has no default.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except ValueError:  # a function without a signature receives the example
        return lambda message: [message["example"]]
    given = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise TypeError(f"its parameter {each.name!r} is keyword-only; give it a default")
    if not given:
        raise TypeError("it takes no argument; add a parameter for the example")
    return lambda message: [_value(each, message, is_first=each is given[0]) for each in given]


def _value(parameter: inspect.Parameter, message: JsonObject, *, is_first: bool) -> object:
    example = message["example"]
    if parameter.name in MESSAGE and parameter.name not in example:
        return message.get(parameter.name)
    if parameter.name in example:
        return example[parameter.name]
    if parameter.default is not parameter.empty:
        return parameter.default
    if is_first:
        return example
    raise TypeError(f"its parameter {parameter.name!r} is not a field of the example and has no default")


if __name__ == "__main__":
    run_worker(serve)
