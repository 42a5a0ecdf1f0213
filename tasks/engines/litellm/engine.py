"""Engine of a model behind an API that litellm supports.

Answers get the same checks as those of OpenAI's servers. `LitellmConnection` makes its calls in a litellm
process, and returns replies as the results or errors of a server.
"""

import json
import os
import site
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import anyio

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import is_continued
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.openai.engine import OpenaiEngine
from winnow.tasks.engines.openai.errors import NoAnswer, RequestRefused, Server, StatusError, Unreadable
from winnow.tasks.engines.openai.http_connection import is_loopback
from winnow.tasks.engines.openai.requests import ESCAPED, MIB, prompt_fields, why_unsendable
from winnow.tasks.engines.openai.server_calls import Connection, ServerInfo
from winnow.tasks.engines.protocol import Engine, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.server_keys import UNKNOWN, api_of, unsupported_key
from winnow.tasks.processes.child_process import log_file
from winnow.tasks.processes.replies import Replies
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

WORKER = "winnow.tasks.engines.litellm.worker"
"""Module that litellm's processes run."""

_PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
INHERITED = frozenset(
    {"LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ"}
    | {*_PROXIES, *(name.lower() for name in _PROXIES)}
)
"""Environment variables of the user that the litellm process inherits; API keys and server addresses are
excluded."""

PROXYLESS = {"NO_PROXY": "*", "no_proxy": "*"}
"""Variables that disable the environment's proxy, for a server on this machine."""

FORCED = {
    "HOME": os.devnull,  # hides files with keys, such as those of AWS
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # otherwise litellm reads a file .env
    "PYTHON_DOTENV_DISABLED": "1",  # its dependencies could read one, too
    "AWS_EC2_METADATA_DISABLED": "true",
    "PYTHONUSERBASE": site.getuserbase(),
}

NO_KEY = "none"
"""Key sent to a private server that needs none, because litellm sends no request without a key."""

Taken = TypeVar("Taken")


class LitellmConnection:
    """Calls made by a litellm process, for the event loop that created the object.

    Args:
        model: The model.
        server: Description of the server in messages, and its key.
        log_folder: Folder for the file with the output of the process.
        max_connections: Maximum number of concurrent calls.
        request_timeout: Maximum seconds for an answer.
    """

    def __init__(
        self,
        model: ModelRef,
        server: Server,
        *,
        log_folder: Path,
        max_connections: int,
        request_timeout: float,
    ) -> None:
        self._server = server
        self._worker = WorkerProcess(
            WORKER,
            log=log_file(log_folder, model.name),
            environment={},
            forced=FORCED | (PROXYLESS if is_loopback(urlsplit(server.url).hostname or "") else {}),
            inherited=INHERITED,
        )
        self._replies = Replies(lambda timeout, most_bytes: self._worker.receive(timeout, most_bytes))
        self._waiters = anyio.CapacityLimiter(max_connections + 1)
        api = api_of(model.model)
        self._load = {
            "model": model.model,
            "api_key": server.key or NO_KEY,
            "api_base": api.base if api and server.url == api.origin else server.url,
            "url": server.url,
            "timeout": request_timeout,
        }

    @property
    def pid(self) -> int:
        """Process id of the litellm process."""
        return self._worker.pid

    async def ready(self, timeout: float) -> JsonObject:
        """Wait until the process is ready; return its message.

        Raises:
            EngineError: If the process is not ready within `timeout` seconds.
        """
        self._send({"load": self._load})
        try:
            said = await self._taken(partial(self._worker.receive, timeout, lambda: MIB))
        except TimeoutError as error:
            raise EngineTimeout(
                self._server.model, f"the litellm process was not ready within {timeout:g} s"
            ) from error
        if "load_failed" in said:
            why = f"litellm cannot be loaded: {said['load_failed']}"
            raise EngineLoadFailed(self._server.model, self._server.shown(why))
        return said

    async def send(self, method: str, url: str, content: bytes | None, *, most_bytes: int) -> bytes:
        """Make one call; return the answer as litellm converts it to OpenAI's form.

        Args:
            method: Ignored, because litellm chooses it.
            url: Ignored, because litellm chooses it.
            content: The arguments of a chat completion, as JSON.
            most_bytes: Maximum length of a body that is read.

        Raises:
            StatusError: If the server answers with an error status.
            Unreadable: If the body of the answer is invalid, too long or compressed.
            NoAnswer: If the server did not answer.
            RequestRefused: If litellm refuses the request.
            EngineLoadFailed: If no request can be sent, or the server redirects requests to another one.
            EngineDied: If the process has ended.
        """
        number = self._replies.expect(MIB + ESCAPED * most_bytes)
        self._send({"number": number, "call": (content or b"{}").decode(), "most_bytes": most_bytes})
        reply = await self._taken(partial(self._replies.wait, number, None))
        if isinstance(answer := reply.get("answer"), str):
            return answer.encode()
        raise self._trouble(reply)

    async def close(self) -> None:
        """End the process, and wait until it has ended."""
        self._worker.close()

    def _trouble(self, reply: JsonObject) -> Exception:
        name, url = self._server.model, self._server.url
        if "elsewhere" in reply:
            return EngineLoadFailed(
                name,
                f"{url} redirects requests to {self._server.shown(str(reply['elsewhere']))}, which gets "
                "neither prompts nor keys; if you mean that server, set model_base_url to its URL",
            )
        if "unsent" in reply:
            why = self._server.shown(str(reply["unsent"]))
            if reply.get("status") in (400, 422):
                failure = GenerationFailure(reason="refused", detail=f"litellm refuses it: {why}")
                return RequestRefused(failure)
            return EngineLoadFailed(name, f"litellm sends no request: {why}; check `model`")
        if "unreadable" in reply:
            return Unreadable(str(reply["unreadable"]))
        if "silence" in reply:
            return NoAnswer(str(reply["silence"]))
        if isinstance(status := reply.get("status"), int):
            headers = {"retry-after": str(reply.get("retry_after") or "")}
            return StatusError(status, headers, str(reply.get("said", "")).encode())
        return EngineDied(name, "the litellm process sent an unreadable reply")

    def _send(self, message: JsonObject) -> None:
        try:
            self._worker.send(message)
        except WorkerEnded as error:
            raise self._died(error) from error

    async def _taken(self, take: Callable[[], Taken]) -> Taken:
        """Wait for a message of the process in a thread, which is abandoned on a timeout."""
        try:
            return await anyio.to_thread.run_sync(take, abandon_on_cancel=True, limiter=self._waiters)
        except TimeoutError:
            raise
        except (WorkerEnded, ValueError, OSError) as error:  # gone, unreadable, or closed by another thread
            raise self._died(error) from error

    def _died(self, error: Exception) -> EngineDied:
        said = self._server.shown(str(error))
        return EngineDied(self._server.model, f"the litellm process does not answer any more: {said}")


class LitellmEngine(OpenaiEngine):
    """Engine of a chat model behind an API that litellm supports, in a separate process.

    Retries, concurrency and the checks of answers are those of `OpenaiEngine`.

    Args:
        model: The model. `model` is litellm's name, such as "anthropic/claude-x", and `model_base_url` is
            set.
        settings: See `OpenaiEngine`.

    Raises:
        EngineLoadFailed: If `chat` is false for the model, or its `model_args` contain forbidden keys.
    """

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        self._takes: frozenset[str] = frozenset()
        self._version = ""
        super().__init__(model, settings)

    @property
    def identity(self) -> str:
        """Version of litellm, and id of the model; waits until litellm is loaded.

        Contacts no server.
        """
        self._probed()
        return " ".join(filter(None, ["litellm", self._version, self._model.model, self._seedless]))

    @property
    def pid(self) -> int:
        """Process id of the litellm process."""
        return self._connection.pid

    def _check_args(self, model: ModelRef) -> None:
        if why := unsupported_key(model.model, chat=model.chat, model_args=model.model_args):
            raise EngineLoadFailed(model.name, ": ".join(why))

    def _open_connection(self) -> Connection:
        self._connection = LitellmConnection(
            self._model,
            self._server,
            log_folder=self._settings.log_folder,
            max_connections=self._settings.max_connections,
            request_timeout=self._settings.request_timeout,
        )
        return self._connection

    def _probe(self) -> ServerInfo:
        said = self._loop.call(self._connection.ready, self._settings.load_timeout)
        self._version = str(said.get("ready"))
        self._takes = frozenset(map(str, said.get("takes", ())))
        return ServerInfo()

    def _right_url(self) -> str:
        return ""  # litellm knows the addresses of its APIs

    def _why_unsendable(self, request: Request, info: ServerInfo) -> GenerationFailure | None:
        why = None
        if request.continuations or request.sampling.choices or request.sampling.logprobs:
            why = "log-probabilities are not available through litellm, whose APIs define them differently"
        elif is_continued(request.asked):
            why = "not every API continues an assistant's message; end messages with one of the user"
        elif lacking := sorted(_wanted(request.sampling) - self._takes):
            why = f"this API does not support {lacking[0]}, according to litellm; remove it"
        if why is not None:
            return GenerationFailure(reason="refused", detail=why)
        return why_unsendable(self._model, request, is_vllm=False)

    def _body(self, request: Request, info: ServerInfo) -> JsonObject:
        sampling = request.sampling
        body = {
            **prompt_fields(self._model, request.asked, request.images),
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            **_asked_for(sampling),
            **dict(self._model.model_args),
        }
        if sampling.temperature > 0.0 and "seed" in self._takes and "seed" not in self._model.model_args:
            body["seed"] = request.seed
        return {key: value for key, value in body.items() if value is not None}


def _asked_for(sampling: Sampling) -> JsonObject:
    """Optional arguments of a call: sampling settings that differ from their defaults."""
    asked: JsonObject = {
        "top_p": sampling.top_p if sampling.top_p < 1.0 else None,
        "top_k": sampling.top_k or None,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "stop": list(sampling.stop) or None,
    }
    if sampling.logit_bias:
        asked["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
    if sampling.structure is not None:
        schema = {"name": "answer", "schema": json.loads(sampling.structure.value), "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return {key: value for key, value in asked.items() if value is not None}


def _wanted(sampling: Sampling) -> set[str]:
    """Names of the features that a request needs and an API may lack."""
    unknown = {key for key in UNKNOWN if key in sampling.as_json()}
    if sampling.structure is not None and sampling.structure.kind != "json_schema":
        return {*unknown, f"structured_output of the kind {sampling.structure.kind}"}
    return unknown | (_asked_for(sampling).keys() - {"top_k"})


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Start a litellm process for the model; it may still be loading on return, and sends nothing."""
    return LitellmEngine(model, settings)
