"""Calls to one server: as many at once as it takes, each sent again a bounded number of times.

How many it takes without complaint is found by the rule of TCP: the number doubles from one full set of
answers to the next until the server first has too much; that halves it, and from then on it grows by one per
full set.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol, TypeVar

import anyio

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.errors import EngineDied, EngineTimeout
from winnow.tasks.engines.openai.answers import ServedModel, Version, json_value, read, read_listing
from winnow.tasks.engines.openai.errors import (
    TOO_MUCH,
    NotThere,
    RequestRefused,
    RetryableError,
    Server,
    StatusError,
    retryable_error,
)
from winnow.tasks.engines.openai.server_line import LISTING_BYTES
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef

Answer = TypeVar("Answer")
Item = TypeVar("Item")

FIRST_DELAY = 0.5  # seconds before a request is sent again; doubles each time
LONGEST_DELAY = 8.0

INTERNAL_ERROR = 500
"""The status by which a server fails over one request; others from 500 on are of gateways and of load.

A gateway fails over one request as well, as over one whose answer takes longer than it waits. Others that are
answered after that request has failed again tell it from an outage.
"""


class AskAll(Protocol):
    """Asks about all items at once and waits for the answers; answer i belongs to item i."""

    def __call__(self, ask: Callable[[Item], Awaitable[Answer]], items: Sequence[Item], /) -> list[Answer]:
        """Raises `EngineError`."""


class Line(Protocol):
    """What a request is sent by, once."""

    async def send(self, method: str, url: str, content: bytes | None, *, most_bytes: int) -> bytes:
        """The body of the answer; see `ServerLine.send`."""

    async def close(self) -> None:
        """Give up what is under way."""


class ServerCalls:
    """Sends requests to a server until they are answered. For one event loop, in which it must be made.

    Args:
        server: What is asked.
        line: What it is asked by.
        max_connections: Requests at once, at the most.
        request_timeout: Seconds an answer may take.
        max_retries: How often one request is sent again.
    """

    def __init__(
        self, server: Server, line: Line, *, max_connections: int, request_timeout: float, max_retries: int
    ) -> None:
        self._server = server
        self._timeout = request_timeout
        self._max_retries = max_retries
        self._places = AdaptiveConcurrency(max_connections)
        self._jitter = Random(0)  # moves moments, and nothing that is stored
        self._line = line
        self._n_answered = 0

    async def get(self, path: str, read: Callable[[object], Answer]) -> Answer:
        """Like `post`, without a body, for what has the length of a list of models at the most."""
        url = self._url(path)
        answer, _ = await self._until_answered(
            lambda: self._line.send("GET", url, None, most_bytes=LISTING_BYTES), read
        )
        return answer

    async def post(
        self, path: str, body: JsonObject, read: Callable[[object], Answer], *, most_bytes: int
    ) -> Answer:
        """Send a body and return what `read` makes of the answer.

        Args:
            path: After the base URL, or a URL of the same server.
            body: What is sent, as JSON values.
            read: Turns the JSON value of an answer into ours; an `Unreadable` says that it is none.
            most_bytes: The longest answer that is read.

        Raises:
            RequestRefused: If the request itself is at fault.
            EngineLoadFailed: If no request can be answered: the key, the address or the model.
            EngineDied: If it was not answered after all retries.
            EngineTimeout: If the server wants to be left alone for longer than there is time.
        """
        answer, _ = await self.timed_post(path, body, read, most_bytes=most_bytes)
        return answer

    async def timed_post(
        self, path: str, body: JsonObject, read: Callable[[object], Answer], *, most_bytes: int
    ) -> tuple[Answer, float]:
        """The same, and the seconds from when the body was sent that was answered: no earlier try of it."""
        url, content = self._url(path), json.dumps(body).encode("ascii")
        return await self._until_answered(
            lambda: self._line.send("POST", url, content, most_bytes=most_bytes), read
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._line.close()

    def _url(self, path: str) -> str:
        return f"{self._server.url}{path}" if path.startswith("/") else path

    async def _until_answered(
        self, send: Callable[[], Awaitable[bytes]], read: Callable[[object], Answer]
    ) -> tuple[Answer, float]:
        retries, n_before = 0, self._n_answered
        n_failed: int | None = None  # at its second failure; at the first one where the next is the last
        while True:
            async with self._places.turn() as cuts:
                try:
                    sent = time.perf_counter()
                    with anyio.fail_after(self._timeout):
                        content = await send()
                        latency = time.perf_counter() - sent
                        answer = read(json_value(content))
                    self._places.widen()
                    self._n_answered += 1
                    return answer, latency
                except Exception as error:  # `retryable_error` raises what it does not know
                    trouble = retryable_error(error, self._server)
                    if trouble.too_much:
                        self._places.narrow(cuts)
                    if retries == self._max_retries:
                        since = n_before if _is_internal(error) else n_failed
                        n_meanwhile = 0 if since is None else self._n_answered - since
                        raise self._given_up(trouble, error, n_meanwhile) from error
                    if retries < 2:
                        n_failed = self._n_answered
            retries += 1
            await self._wait(trouble, retries)

    async def _wait(self, trouble: RetryableError, retries: int) -> None:
        if trouble.wait is None:
            delay = min(FIRST_DELAY * 2 ** (retries - 1), LONGEST_DELAY)
            await anyio.sleep(delay * self._jitter.uniform(0.75, 1.0))
            return
        if anyio.current_time() + trouble.wait >= anyio.current_effective_deadline():
            raise EngineTimeout(
                self._server.model,
                f"{self._server.url} wants to be left alone for {trouble.wait:g} s, longer than "
                "execution.batch_timeout leaves",
            )
        self._places.pause(trouble.wait)

    def _given_up(
        self, trouble: RetryableError, error: Exception, n_meanwhile: int
    ) -> EngineDied | RequestRefused:
        """What to raise after the last attempt.

        Args:
            trouble: What became of it.
            error: The same as it came.
            n_meanwhile: Others that were answered since the request was first sent; or, where the trouble may
                as well be an outage, since it failed again: what was under way when one began is answered
                before that.
        """
        times = f"{self._max_retries + 1} attempts" if self._max_retries else "one attempt"
        is_load = isinstance(error, StatusError) and error.status in TOO_MUCH
        if n_meanwhile and not is_load:
            detail = f"the server {trouble.why} (after {times}), and answered others meanwhile"
            return RequestRefused(GenerationFailure(reason="refused", detail=detail))
        return EngineDied(self._server.model, f"{self._server.url} {trouble.why} (after {times})")


def _is_internal(error: Exception) -> bool:
    return isinstance(error, StatusError) and error.status == INTERNAL_ERROR


async def ask_about(
    ask: Callable[[Item], Awaitable[Answer]], items: Mapping[int, Item], answers: dict[int, Answer]
) -> None:
    """Ask about all items at once, and put each answer under the number of its item when it is there.

    The first error ends it for all; those that were answered before have their answers.
    """

    async def answer(number: int, item: Item) -> None:
        answers[number] = await ask(item)

    try:
        async with anyio.create_task_group() as tasks:
            for number, item in items.items():
                tasks.start_soon(answer, number, item)
    except ExceptionGroup as group:
        first = group.exceptions[0]
    else:
        return
    raise first


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server told of itself."""

    listed: tuple[str, ...] = ()
    """Ids of the models that it lists; a server may know more, or list none."""
    vllm: str | None = None
    """Version of vLLM, where it is vLLM and shows more than OpenAI's own API."""
    max_model_len: int | None = None
    """Context window of the model in tokens, where known."""


async def probe(calls: ServerCalls, model: ModelRef, root: str) -> ServerInfo:
    """Ask a server what it is. Not all of them answer this: nothing depends on it but what vLLM alone can do.

    Args:
        calls: The server.
        model: What will be asked of it.
        root: Its URL without the version of the API.

    Raises:
        EngineError: If it cannot be reached, or refuses the key.
    """
    try:
        listed = await calls.get("/models", read_listing)
    except (NotThere, RequestRefused):
        listed = []
    ours = next((each for each in listed if each.id == model.model), ServedModel(id=model.model))
    return ServerInfo(
        listed=tuple(each.id for each in listed),
        vllm=await _vllm_version(calls, root) if ours.owned_by == "vllm" else None,
        max_model_len=ours.max_model_len,
    )


async def _vllm_version(calls: ServerCalls, root: str) -> str | None:
    try:
        found: Version = await calls.get(f"{root}/version", partial(read, Version))
    except (NotThere, RequestRefused):
        return None  # behind a gateway that passes on nothing but OpenAI's API
    return found.version


FIRST_WIDTH = 16


class AdaptiveConcurrency:
    """Hands out turns to requests. For one event loop, in which it must be made.

    Args:
        largest: The most requests at once, at least 1.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._width = float(min(FIRST_WIDTH, largest))
        self._limiter = anyio.CapacityLimiter(int(self._width))
        self._cuts = 0
        self._resume_at = float("-inf")

    @property
    def width(self) -> int:
        """Requests that may be under way now, in [1, `largest`]."""
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a free place and for the end of any pause; gives the number of cuts so far."""
        async with self._limiter:
            while (left := self._resume_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
            yield self._cuts

    def widen(self) -> None:
        """A request was answered: grow, if all places were taken. Call it within the turn."""
        if self._limiter.available_tokens < 1:
            self._set(self._width + (1.0 / self._width if self._cuts else 1.0))

    def narrow(self, cuts: int) -> None:
        """The server had too much of a request whose turn began after so many cuts.

        Those that were sent together are refused together: they count once.
        """
        if cuts == self._cuts:
            self._cuts += 1
            self._set(self._width / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; a longer pause that was asked for before stays."""
        self._resume_at = max(self._resume_at, anyio.current_time() + seconds)

    def _set(self, width: float) -> None:
        self._width = min(max(1.0, width), float(self._largest))
        self._limiter.total_tokens = int(self._width)
