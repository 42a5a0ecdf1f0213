"""Calls to one server: limited concurrency, and a limited number of attempts."""

import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

import anyio

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.images import Image
from winnow.tasks.engines.openai.answers import (
    Generated,
    Props,
    ServedModel,
    Version,
    json_value,
    read,
    read_listing,
)
from winnow.tasks.engines.openai.errors import (
    TOO_MUCH,
    Forbidden,
    NotThere,
    RequestRefused,
    RetryableError,
    Server,
    StatusError,
    Uncounted,
    Unreadable,
    retryable_error,
)
from winnow.tasks.engines.openai.http_connection import LISTING_BYTES
from winnow.tasks.engines.openai.requests import answer_bytes
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef
from winnow.tasks.engines.server_keys import is_openais_own
from winnow.tasks.engines.time_shares import TimeShares
from winnow.tasks.text.phrases import count_of

Answer = TypeVar("Answer")
Item = TypeVar("Item")

LOGGER = logging.getLogger("winnow.engines")

FIRST_DELAY = 0.5  # seconds before a request is sent again; doubles each time
LONGEST_DELAY = 8.0

CONTROL_TIMEOUT = 30.0
"""Maximum seconds for the answer to a control request; afterwards the server counts as unreachable."""


class AskAll(Protocol):
    """Callable that sends all items at once and waits; answer i belongs to item i."""

    def __call__(self, ask: Callable[[Item], Awaitable[Answer]], items: Sequence[Item], /) -> list[Answer]:
        """Send the items; raises `EngineError`."""


class Posted(NamedTuple, Generic[Answer]):
    """An answer, with its latency and its share of the server's time."""

    answer: Answer
    latency: float
    """Seconds from when the answered attempt was sent to its answer; earlier attempts are not included."""
    seconds: float
    """Share of the time in which the server worked for this process, including earlier attempts."""


class Connection(Protocol):
    """Interface of a connection to a server, which sends each request once."""

    async def send(self, method: str, url: str, content: bytes | None, *, most_bytes: int) -> bytes:
        """Send a request and return the body of the answer; see `HttpConnection.send`."""

    async def close(self) -> None:
        """Abandon pending requests."""


FIRST_WIDTH = 4
"""Initial number of concurrent requests to a server that does not report its own number."""

GROWTH = 1.05
"""Minimum growth of answers per second that justifies doubling the number of requests."""

LEAST_MEASURED = 8
"""Minimum number of answers from which a rate is measured."""

SETTLED = 16
"""Number of measurements after which growth is tried again, because other load may have ended."""


class AdaptiveConcurrency:
    """Adaptive limit of concurrent requests, for the event loop that created the object.

    A server that queues excess requests never refuses them: more requests only wait longer there, and time
    out. So the limit starts small and doubles as long as that yields more answers per second. If a server
    reports overload, the limit is halved, and then grows by one per full set of answers, as in TCP.

    Args:
        largest: Maximum number of concurrent requests, at least 1.
        clock: Returns the time in seconds.
    """

    def __init__(self, largest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._largest, self._clock = largest, clock
        self._width = float(min(FIRST_WIDTH, largest))
        self._limiter = anyio.CapacityLimiter(int(self._width))
        self._cuts = 0
        self._resume_at = float("-inf")
        self._before: tuple[float, float] | None = None  # width and rate before the last growth
        self._rest = 0  # measurements to skip
        self._skipped = self._counted = 0
        self._since: float | None = None  # of the measurement

    @property
    def width(self) -> int:
        """Current maximum of concurrent requests, in [1, `largest`]."""
        return int(self._limiter.total_tokens)

    def begin_at(self, places: int) -> None:
        """Start with the concurrency that the server reports; call before any request is answered."""
        self._set(float(places))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a free place and the end of any pause; yield the number of halvings so far."""
        async with self._limiter:
            while (left := self._resume_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
            yield self._cuts

    def widen(self) -> None:
        """Record an answered request and adjust the concurrency limit. Call inside `turn()`."""
        if self._limiter.available_tokens >= 1:
            self._measure_again(0)  # a server with free places gives no evidence about more
        elif self._cuts:
            self._set(self._width + 1.0 / self._width)
        else:
            self._measure()

    def narrow(self, cuts: int) -> None:
        """Halve the limit after an overload; `cuts` is the number that the request's `turn` yielded.

        Requests sent together are refused together, and cause one halving.
        """
        if cuts == self._cuts:
            self._cuts += 1
            self._set(self._width / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for some seconds; a longer pause set before stays in force."""
        self._resume_at = max(self._resume_at, anyio.current_time() + seconds)

    def _measure(self) -> None:
        """Count an answer; adjust the limit after enough answers."""
        now = self._clock()
        if self._skipped > 0:  # its request was sent before the limit changed
            self._skipped -= 1
            self._since = now
            return
        self._since = now if self._since is None else self._since
        self._counted += 1
        if self._counted < max(LEAST_MEASURED, self._width):
            return
        rate = self._counted / max(now - self._since, 1e-9)
        self._measure_again(0)
        if self._rest:
            self._rest -= 1
        elif self._before is not None and rate <= GROWTH * self._before[1]:
            self._change(self._before[0])
            self._before, self._rest = None, SETTLED
        elif self._width < self._largest:
            self._before = self._width, rate
            self._change(2 * self._width)

    def _change(self, width: float) -> None:
        under_way = self.width
        self._set(width)
        self._measure_again(under_way)

    def _measure_again(self, skipped: int) -> None:
        self._skipped, self._counted = skipped, 0
        self._since = None

    def _set(self, width: float) -> None:
        self._width = min(max(1.0, width), float(self._largest))
        self._limiter.total_tokens = int(self._width)


class ServerCalls:
    """Send requests to a server until they are answered, from the loop that created the object.

    Args:
        server: The server.
        connection: Connection to the server.
        max_connections: Maximum number of concurrent requests.
        request_timeout: Maximum seconds for an answer.
        load_timeout: Seconds for which a request is repeated while the server reports that it is loading the
            model.
        max_retries: Maximum number of times that one request is repeated otherwise.
        control: Returns path and body of a request that every reachable server answers quickly; None if none
            is known yet.
    """

    def __init__(
        self,
        server: Server,
        connection: Connection,
        *,
        max_connections: int,
        request_timeout: float,
        load_timeout: float,
        max_retries: int,
        control: Callable[[], tuple[str, JsonObject] | None],
    ) -> None:
        self._server = server
        self._timeout = request_timeout
        self._load_timeout = load_timeout
        self._max_retries = max_retries
        self._places = AdaptiveConcurrency(max_connections)
        self._shares = TimeShares()
        self._timeouts = 0
        self._jitter = Random(0)  # affects only delays, nothing that is stored
        self._connection = connection
        self._n_answered = 0  # counts only `post`: a server may list its models and answer no request
        self._control = control
        self._controlling = anyio.Lock()

    async def get(self, path: str, read: Callable[[object], Answer]) -> Answer:
        """Like `post`, without a body; for answers at most as long as a list of models.

        Raises:
            NotThere: If the answer cannot be parsed, such as the web page of a gateway, or the URL does not
                exist.
        """
        url = self._url(path)
        try:
            posted = await self._until_answered(
                lambda: self._connection.send("GET", url, None, most_bytes=LISTING_BYTES), read
            )
        except EngineDied as error:
            if isinstance(error.__cause__, Unreadable):
                raise NotThere(self._server.model, error.why) from error
            raise
        return posted.answer

    async def post(
        self, path: str, body: JsonObject, read: Callable[[object], Answer], *, most_bytes: int
    ) -> Answer:
        """Send a body and return the answer as parsed by `read`.

        Args:
            path: Path after the base URL, or a URL of the same server.
            body: The body to send, as JSON values.
            read: Parses the JSON value of an answer; raises `Unreadable` if the value is invalid.
            most_bytes: Maximum length of an answer that is read.

        Raises:
            RequestRefused: If the request itself is at fault.
            EngineLoadFailed: If no request can be answered: the key, the address or the model.
            EngineDied: If the server did not answer after all retries.
            EngineTimeout: If the server asks to wait for longer than the time left.
        """
        return (await self.timed_post(path, body, read, most_bytes=most_bytes)).answer

    async def timed_post(
        self, path: str, body: JsonObject, read: Callable[[object], Answer], *, most_bytes: int
    ) -> Posted[Answer]:
        """Like `post`; the result includes the latency and the share of the server's time.

        The body is written when it is sent: bodies with images that wait for their turn are small.
        """
        url = self._url(path)

        def counted(value: object) -> Answer:
            answer = read(value)
            self._n_answered += 1
            return answer

        return await self._until_answered(
            lambda: self._connection.send("POST", url, _written(body), most_bytes=most_bytes), counted
        )

    async def lists_models(self, url: str) -> bool:
        """Whether the server lists models at another base URL; sends one request."""
        return bool(await self.peek(f"{url}/models", read_listing))

    async def peek(self, url: str, read: Callable[[object], Answer]) -> Answer | None:
        """Read a URL of the server with a single request; None if it does not answer as expected."""
        try:
            with anyio.fail_after(min(self._timeout, CONTROL_TIMEOUT)):
                said = await self._connection.send("GET", url, None, most_bytes=LISTING_BYTES)
                return read(json_value(said))
        except Exception as error:
            with suppress(EngineError, RequestRefused):
                retryable_error(error, self._server)  # raises unknown errors
            return None

    def begin_at(self, places: int) -> None:
        """Start with as many concurrent requests as the server reports that it can serve."""
        self._places.begin_at(places)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    def _url(self, path: str) -> str:
        return f"{self._server.url}{path}" if path.startswith("/") else path

    async def _until_answered(
        self, send: Callable[[], Awaitable[bytes]], read: Callable[[object], Answer]
    ) -> Posted[Answer]:
        retries, seconds = 0, 0.0
        until = anyio.current_time() + self._load_timeout - LONGEST_DELAY
        n_failed: int | None = None  # at the second failure, or at the first if only one attempt is left
        while True:
            async with self._places.turn() as cuts:
                try:
                    # Not earlier: waiting for a place is not the server's time.
                    begun, sent = self._shares.begin(), time.perf_counter()
                    try:
                        with anyio.fail_after(self._timeout):
                            content = await send()
                            latency = time.perf_counter() - sent
                            answer = read(json_value(content))
                    finally:
                        seconds += self._shares.end(begun)
                    self._places.widen()
                    return Posted(answer, latency, seconds)
                except Exception as error:  # `_trouble` raises unknown errors
                    trouble = await self._trouble(error)
                    if trouble.too_much:
                        self._places.narrow(cuts)
                    if isinstance(error, TimeoutError):
                        self._log_timeout()
                    waits = trouble.is_loading and anyio.current_time() < until
                    if not waits and self._is_last(error, retries):
                        raise await self._final_error(trouble, error, retries + 1, n_failed) from error
                    if retries < 2:
                        n_failed = self._n_answered
            retries += 1
            await self._wait(trouble, retries)

    async def _trouble(self, error: Exception) -> RetryableError:
        """Classify an exception like `retryable_error`; refuse only this request if others are answered.

        That concerns requests that the server forbids.
        """
        try:
            return retryable_error(error, self._server)
        except Forbidden as forbidden:
            if self._n_answered and await self._answers_others(self._n_answered):
                failure = GenerationFailure(reason="refused", detail=forbidden.detail)
                raise RequestRefused(failure) from error
            raise

    def _log_timeout(self) -> None:
        """Log a timed-out request: the first one, and each time that their number has doubled."""
        self._timeouts += 1
        if self._timeouts & (self._timeouts - 1) == 0:
            LOGGER.warning(
                "model %r: %s did not answer %s within execution.request_timeout (%g s); Winnow now sends "
                "it fewer at once",
                self._server.model,
                self._server.where,
                count_of(self._timeouts, "request"),
                self._timeout,
                extra={"event": "timed_out", "model": self._server.model},
            )

    async def _wait(self, trouble: RetryableError, retries: int) -> None:
        """Wait before a request is repeated: longer each time, and as long as the server requests."""
        if trouble.wait is not None:
            if anyio.current_time() + trouble.wait >= anyio.current_effective_deadline():
                raise EngineTimeout(
                    self._server.model,
                    f"{self._server.where} asks to wait for {trouble.wait:g} s, longer than "
                    "execution.batch_timeout allows",
                )
            self._places.pause(trouble.wait)
        delay = min(FIRST_DELAY * 2 ** (retries - 1), LONGEST_DELAY)
        await anyio.sleep(delay * self._jitter.uniform(0.75, 1.0))

    def _is_last(self, error: Exception, retries: int) -> bool:
        """Whether no attempt is left, or too little time for another full attempt."""
        if retries >= self._max_retries or (retries and self._never_counts(error)):
            return True
        left = anyio.current_effective_deadline() - anyio.current_time()
        return isinstance(error, TimeoutError) and left < self._timeout

    def _never_counts(self, error: Exception) -> bool:
        """Whether the server seems never to count tokens, while each answer may cost money."""
        return isinstance(error, Uncounted) and not self._n_answered

    async def _final_error(
        self, trouble: RetryableError, error: Exception, attempts: int, since: int | None
    ) -> EngineError | RequestRefused:
        """Error to raise after the last attempt.

        Args:
            trouble: Why the request was not answered.
            error: The exception behind `trouble`.
            attempts: Number of attempts that were made.
            since: Number of other requests that had been answered when this one failed for the second time,
                or for the first time if the second attempt was the last. Requests in progress when an outage
                begins are answered before that. None if it failed once.
        """
        times = f"{attempts} attempts" if attempts > 1 else "one attempt"
        if self._never_counts(error):
            why = f"{trouble.why} (after {times}); configure it, or the gateway before it, to send `usage`"
            return EngineLoadFailed(self._server.model, f"{self._server.where} {why}")
        is_load = isinstance(error, StatusError) and error.status in TOO_MUCH
        if not is_load and await self._answers_others(self._n_answered if since is None else since):
            detail = f"the server {trouble.why} (after {times}), but answered others meanwhile"
            return RequestRefused(GenerationFailure(reason="refused", detail=detail))
        return EngineDied(self._server.model, f"{self._server.where} {trouble.why} (after {times})")

    async def _answers_others(self, since: int) -> bool:
        """Whether the server answered others since that count, or answers a control request now."""
        async with self._controlling:  # once for all that fail together
            if self._n_answered == since and await self._is_control_answered():
                self._n_answered += 1
            return self._n_answered > since

    async def _is_control_answered(self) -> bool:
        if (control := self._control()) is None:
            return False
        path, body = control
        content = json.dumps(body).encode("ascii")
        try:
            with anyio.fail_after(min(self._timeout, CONTROL_TIMEOUT)):
                said = await self._connection.send(
                    "POST", self._url(path), content, most_bytes=answer_bytes(body)
                )
                read(Generated, json_value(said))
        except Exception as error:
            with suppress(EngineError, RequestRefused):
                retryable_error(error, self._server)  # raises unknown errors
            return False
        return True


async def ask_about(
    ask: Callable[[Item], Awaitable[Answer]], items: Mapping[int, Item], answers: dict[int, Answer]
) -> None:
    """Send all items at once; store each answer under its item's number when it arrives.

    The first error ends all requests; answers that arrived before are kept.
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


def _written(body: JsonObject) -> bytes:
    """A body as JSON, with its images as URLs; raises `RequestRefused` if one cannot be read any more."""
    try:
        return json.dumps(body, default=Image.as_url).encode("ascii")
    except ValueError as error:
        failure = GenerationFailure(reason="bad_prompt", detail=f"an image {error}")
        raise RequestRefused(failure) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Properties that a server reports about itself and its model."""

    listed: tuple[str, ...] = ()
    """Ids of the models that the server lists; it may support more, or list none."""
    vllm: str | None = None
    """Version of vLLM, if the server is vLLM's and offers more than OpenAI's own API."""
    max_model_len: int | None = None
    """Context window of the model in tokens, if known."""
    places: int | None = None
    """Number of requests that the server serves concurrently; None if not reported."""


async def probe(calls: ServerCalls, model: ModelRef, root: str) -> ServerInfo:
    """Request a server's properties; only features of vLLM's and llama.cpp's servers need them.

    Args:
        calls: The calls to the server.
        model: The model that will be requested.
        root: URL of the server without the version of the API.

    Raises:
        EngineError: If the server cannot be reached, or refuses the key.
    """
    try:
        listed = await calls.get("/models", read_listing)
    except (NotThere, Forbidden, RequestRefused):  # for example, a key that may use models but not list them
        listed = []
    ours = next((each for each in listed if each.id == model.model), ServedModel(id=model.model))
    is_vllm = ours.owned_by == "vllm"
    found = ServerInfo(
        listed=tuple(each.id for each in listed),
        vllm=await _vllm_version(calls, root) if is_vllm else None,
        max_model_len=ours.max_model_len,
        places=None if is_vllm or is_openais_own(root) else await _places(calls, root),
    )
    if found.places is not None:
        calls.begin_at(found.places)
    return found


async def _places(calls: ServerCalls, root: str) -> int | None:
    """Number of requests that llama.cpp's server serves concurrently; None for other servers."""
    told = await calls.peek(f"{root}/props", partial(read, Props))
    return None if told is None else told.total_slots


async def _vllm_version(calls: ServerCalls, root: str) -> str | None:
    try:
        found: Version = await calls.get(f"{root}/version", partial(read, Version))
    except (NotThere, Forbidden, RequestRefused):
        return None  # behind a gateway that forwards only OpenAI's API
    return found.version
