"""Connection to a litellm process: its calls, and its replies as the results or errors of a server."""

import os
import site
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import anyio

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.openai.errors import NoAnswer, RequestRefused, Server, StatusError, Unreadable
from winnow.tasks.engines.openai.http_connection import is_loopback
from winnow.tasks.engines.openai.requests import ESCAPED, MIB
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.engines.server_keys import api_of
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
"""The user's variables passed to litellm: keys and addresses are not among them."""

PROXYLESS = {"NO_PROXY": "*", "no_proxy": "*"}
"""Variables for a server on this machine, which is reached without the proxy of the environment."""

FORCED = {
    "HOME": os.devnull,  # nor are files with keys, such as those of AWS
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # else it reads a file .env
    "PYTHON_DOTENV_DISABLED": "1",  # as may whatever it imports
    "AWS_EC2_METADATA_DISABLED": "true",
    "PYTHONUSERBASE": site.getuserbase(),
}

NO_KEY = "none"
"""Key sent if a private server needs none: litellm sends no request without one."""

Taken = TypeVar("Taken")


class LitellmConnection:
    """Calls made by a litellm process. For one event loop, in which it must be created.

    Args:
        model: The model.
        server: The server as named in messages, and its key.
        log_folder: Folder in which the process writes what it would print.
        max_connections: Maximum number of concurrent calls.
        request_timeout: Seconds an answer may take.
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
        """Process id of the worker."""
        return self._worker.pid

    async def ready(self, timeout: float) -> JsonObject:
        """Wait until the process is ready; return its message.

        Raises:
            EngineError: If it is not ready within `timeout` seconds.
        """
        self._send({"load": self._load})
        try:
            said = await self._taken(partial(self._worker.receive, timeout, lambda: MIB))
        except TimeoutError as error:
            raise EngineTimeout(
                self._server.model, f"the litellm process did not come up within {timeout:g} s"
            ) from error
        if "load_failed" in said:
            why = f"litellm cannot be loaded: {said['load_failed']}"
            raise EngineLoadFailed(self._server.model, self._server.shown(why))
        return said

    async def send(self, method: str, url: str, content: bytes | None, *, most_bytes: int) -> bytes:
        """Make one call; return the answer as litellm converts it to OpenAI's form.

        Args:
            method: Ignored, as is `url`: litellm knows both.
            url: See `method`.
            content: The arguments of a chat completion, as JSON.
            most_bytes: Maximum length of a body that is read.

        Raises:
            StatusError: If the server answers with a status that is no answer.
            Unreadable: If its body is no answer, too long or compressed.
            NoAnswer: If there was none.
            RequestRefused: If litellm refuses the request.
            EngineLoadFailed: If no request can be sent, or the server redirects requests to another one.
            EngineDied: If the process is gone.
        """
        number = self._replies.expect(MIB + ESCAPED * most_bytes)
        self._send({"number": number, "call": (content or b"{}").decode(), "most_bytes": most_bytes})
        reply = await self._taken(partial(self._replies.wait, number, None))
        if isinstance(answer := reply.get("answer"), str):
            return answer.encode()
        raise self._trouble(reply)

    async def close(self) -> None:
        """End the process, and wait until it is gone."""
        self._worker.close()

    def _trouble(self, reply: JsonObject) -> Exception:
        name, url = self._server.model, self._server.url
        if "elsewhere" in reply:
            return EngineLoadFailed(
                name,
                f"{url} sends requests on to {self._server.shown(str(reply['elsewhere']))}, which gets "
                "neither prompts nor keys; name that server as model_base_url if it is the one you mean",
            )
        if "unsent" in reply:
            why = self._server.shown(str(reply["unsent"]))
            if reply.get("status") in (400, 422):
                return RequestRefused(GenerationFailure(reason="refused", detail=f"litellm says: {why}"))
            return EngineLoadFailed(name, f"litellm asks nothing for it: {why}; look at `model`")
        if "unreadable" in reply:
            return Unreadable(str(reply["unreadable"]))
        if "silence" in reply:
            return NoAnswer(str(reply["silence"]))
        if isinstance(status := reply.get("status"), int):
            headers = {"retry-after": str(reply.get("retry_after") or "")}
            return StatusError(status, headers, str(reply.get("said", "")).encode())
        return EngineDied(name, "the litellm process wrote what cannot be read")

    def _send(self, message: JsonObject) -> None:
        try:
            self._worker.send(message)
        except WorkerEnded as error:
            raise self._died(error) from error

    async def _taken(self, take: Callable[[], Taken]) -> Taken:
        """Wait for a message of the process in a thread, which is abandoned once it is too late."""
        try:
            return await anyio.to_thread.run_sync(take, abandon_on_cancel=True, limiter=self._waiters)
        except TimeoutError:
            raise
        except (WorkerEnded, ValueError, OSError) as error:  # gone, unreadable, or closed by another thread
            raise self._died(error) from error

    def _died(self, error: Exception) -> EngineDied:
        said = self._server.shown(str(error))
        return EngineDied(self._server.model, f"the litellm process cannot be asked any more: {said}")
