"""Engine of a model on any server that supports OpenAI's API over HTTP."""

import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed, EngineTimeout
from winnow.tasks.engines.known_providers import NO_SEED
from winnow.tasks.engines.openai.answers import Generated, answer_of, read_generated
from winnow.tasks.engines.openai.errors import (
    NoRoom,
    NotThere,
    RequestRefused,
    Server,
    TokenRoom,
    Unreadable,
    why_no_room,
)
from winnow.tasks.engines.openai.http_connection import HttpConnection, through_proxy
from winnow.tasks.engines.openai.requests import (
    answer_bytes,
    generation_body,
    generation_path,
    is_seedless,
    other_base_urls,
    reserved_args,
    why_unsendable,
)
from winnow.tasks.engines.openai.server_calls import (
    Connection,
    Posted,
    ServerCalls,
    ServerInfo,
    ask_about,
    probe,
)
from winnow.tasks.engines.protocol import (
    Answer,
    BatchUnfinished,
    Came,
    Engine,
    GenerationFailure,
    ModelRef,
    Request,
    Sampling,
)
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.server_keys import OPENAI_URL, key_in

if TYPE_CHECKING:
    from winnow.tasks.engines.openai.scoring import ServerScorer

CONTROL = Request(prompt="Say hello.", sampling=Sampling(max_tokens=16), seed=0)

Item = TypeVar("Item")
Result = TypeVar("Result")


class OpenaiEngine:
    """Engine of a model on an OpenAI-compatible server, contacted on first use.

    Requests are sent from an event loop in the engine's own thread. Several threads may request texts at the
    same time; choices and likelihoods of one thread wait for those of another.

    Args:
        model: The model; its `model_args` are put into the body of every request.
        settings: The settings of engines, such as timeouts, retries and concurrency.

    Raises:
        EngineLoadFailed: If `model_args` contain a key that Winnow sets.
    """

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        self._check_args(model)
        self._model = model
        self._settings = settings
        self._server = Server(
            model=model.name,
            url=model.model_base_url or OPENAI_URL,
            key=key_in(model.api_key) if model.api_key else "",
            variable=model.api_key,
            proxy=through_proxy(model.model_base_url or OPENAI_URL),
        )
        self._root = self._server.url.removesuffix("/v1")
        self._info: ServerInfo | None = None
        self._scores: ServerScorer | None = None
        self._alone = threading.Lock()  # guards probing and scoring, and their deadline
        self._deadline = float("inf")
        self._scopes: set[anyio.CancelScope] = set()  # one for each group of requests in progress
        self._is_closed = False
        self._thread = ExitStack()
        self._loop = self._thread.enter_context(start_blocking_portal(name=f"openai {model.name}"))
        try:
            self._calls = self._loop.call(self._open_calls)
        except BaseException:
            self._thread.close()
            raise

    @property
    def joins(self) -> bool:
        """See `JoinsBatches`: a server accepts requests at any time."""
        return True

    @property
    def identity(self) -> str:
        """Server software, if known, and id of the model; contacts the server once."""
        version = self._probed().vllm
        parts = ["openai", version and f"vllm/{version}", self._model.model, self._seedless]
        return " ".join(filter(None, parts))

    @property
    def _seedless(self) -> str:
        """Part of the identity for a server without seeds, whose sampled texts cannot be reproduced."""
        return NO_SEED if is_seedless(self._model.model_args) else ""

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        return self.generate_each(requests, lambda place, answer: None)

    def generate_each(self, requests: Sequence[Request], came: Came) -> list[Answer]:
        """Answer every request, and report each output as it arrives; see `AnswersAsTheyCome`."""
        info = self._probed()
        answers: dict[int, Answer] = {}
        try:
            self._answer(requests, info, answers, came)
        except (EngineError, CancelledError) as error:
            if answers:
                raise BatchUnfinished(answers, error) from error
            raise
        return [answers[i] for i in range(len(requests))]

    def _answer(
        self, requests: Sequence[Request], info: ServerInfo, answers: dict[int, Answer], came: Came
    ) -> None:
        """Answer each request, and store its answer under its position."""
        writing: dict[int, Request] = {}
        choosing: dict[int, Request] = {}
        continuing: dict[int, Request] = {}
        for i, request in enumerate(requests):
            if failure := self._why_unsendable(request, info):
                answers[i] = failure
            elif request.continuations:
                continuing[i] = request
            else:
                (choosing if request.sampling.choices else writing)[i] = request
        try:
            self._write(writing, info, answers, came)
            if choosing or continuing:
                with self._alone:
                    self._deadline = _from_now(self._settings.batch_timeout)
                    scorer = self._scorer(info)
                    chosen = scorer.choose(list(choosing.values()))
                    answers.update(zip(choosing, chosen, strict=True))
                    scored = scorer.score(list(continuing.values()))
                    answers.update(zip(continuing, scored, strict=True))
        except NotThere as error:
            listed = self._server.shown(", ".join(info.listed)) or "no models"
            may_chat = not self._model.chat and self._model.model in info.listed
            remedy = ", so it may be a chat-only model: set chat: true" if may_chat else ""
            if not info.listed and (url := self._right_url()):
                remedy = f"; {url}"
            raise EngineLoadFailed(self._model.name, f"{error.why}; it lists {listed}{remedy}") from error
        except EngineDied as error:
            if info.listed or not isinstance(error.__cause__, Unreadable) or not (url := self._right_url()):
                raise
            raise EngineLoadFailed(self._model.name, f"{error.why}; {url}") from error

    def _right_url(self) -> str:
        """Hint at the likely base URL if the configured one lists no models; otherwise empty."""
        others = other_base_urls(self._server.url)
        self._deadline = _from_now(self._settings.batch_timeout)
        lists = self._ask_all(self._calls.lists_models, others)
        found = next((url for url, is_it in zip(others, lists, strict=True) if is_it), None)
        if found is not None:
            return f"models are listed at {found}: set model_base_url to that"
        versioned = f"{self._server.url}/v1"
        return f"the base URL of most servers ends with /v1: {versioned}" if versioned in others else ""

    def close(self) -> None:
        """Abandon pending requests, close all connections and end the thread."""
        with suppress(RuntimeError):  # closed before
            self._loop.call(self._give_up)
            self._loop.call(self._loop.stop, True)
        self._thread.close()

    async def _give_up(self) -> None:
        self._is_closed = True
        # Before the connections close: a request that loses its connection would be sent again.
        while self._scopes:
            for scope in self._scopes:
                scope.cancel()
            await anyio.sleep(0)
        await self._calls.close()

    def _check_args(self, model: ModelRef) -> None:
        if taken := reserved_args(model.model_args):
            raise EngineLoadFailed(model.name, f"model_args cannot contain {taken[0]}: Winnow sets it")

    def _open_connection(self) -> Connection:
        return HttpConnection(self._server, max_connections=self._settings.max_connections)

    def _open_calls(self) -> ServerCalls:
        return ServerCalls(
            self._server,
            self._open_connection(),
            max_connections=self._settings.max_connections,
            request_timeout=self._settings.request_timeout,
            load_timeout=self._settings.load_timeout,
            max_retries=self._settings.max_retries,
            control=self._control,
        )

    def _control(self) -> tuple[str, JsonObject] | None:
        return None if self._info is None else (generation_path(self._model), self._body(CONTROL, self._info))

    def _probed(self) -> ServerInfo:
        with self._alone:
            if self._info is None:
                self._info = self._probe()
            return self._info

    def _probe(self) -> ServerInfo:
        self._deadline = _from_now(self._settings.load_timeout)
        [found] = self._ask_all(partial(probe, self._calls, self._model), [self._root])
        return found

    def _why_unsendable(self, request: Request, info: ServerInfo) -> GenerationFailure | None:
        return why_unsendable(self._model, request, is_vllm=info.vllm is not None)

    def _body(self, request: Request, info: ServerInfo) -> JsonObject:
        return generation_body(self._model, request, vllm=info.vllm, max_model_len=info.max_model_len)

    def _write(
        self, requests: Mapping[int, Request], info: ServerInfo, answers: dict[int, Answer], came: Came
    ) -> None:
        async def answer(place: int) -> Answer:
            found = await self._written(info, requests[place])
            came(place, found)
            return found

        deadline = _from_now(self._settings.batch_timeout)
        self._loop.call(self._in_time, answer, {place: place for place in requests}, deadline, answers)

    async def _written(self, info: ServerInfo, request: Request) -> Answer:
        """Answer a request for a text.

        If the server has room for fewer tokens than the request allows, the request is sent again with a
        lower limit. A local engine would also generate only as many tokens as fit.
        """
        body, room = self._body(request, info), TokenRoom()
        answer: Answer | None = None
        while answer is None:
            try:
                answer = await self._sent(body, request)
            except NoRoom as refusal:
                smaller = room.narrowed(body, refusal.sentence)
                answer = why_no_room(body, refusal) if smaller is None else None
                body = smaller or body
            except RequestRefused as error:
                answer = error.failure
        self._be_patient()
        return answer

    async def _sent(self, body: JsonObject, request: Request) -> Answer:
        """Send the body of a request and return its answer; raises like `ServerCalls.post`."""
        found: Posted[Generated] = await self._calls.timed_post(
            generation_path(self._model),
            body,
            partial(read_generated, chat=self._model.chat),
            most_bytes=answer_bytes(body),
        )
        return answer_of(
            found.answer,
            self._server,
            found.seconds,
            found.latency,
            wants_logprobs=request.sampling.logprobs,
        )

    def _be_patient(self) -> None:
        """Extend the deadline of all groups in progress, which wait for each other's connections."""
        left = _from_now(self._settings.batch_timeout) - time.monotonic()
        for scope in self._scopes:
            scope.deadline = anyio.current_time() + left

    def _scorer(self, info: ServerInfo) -> "ServerScorer":
        if self._scores is None:
            # Imported here because it loads numpy, which generation does not need.
            from winnow.tasks.engines.openai.scoring import ServerScorer

            self._scores = ServerScorer(
                self._model,
                self._calls,
                server=self._server,
                root=self._root,
                info=info,
                ask_all=self._ask_all,
            )
        return self._scores

    def _ask_all(self, ask: Callable[[Item], Awaitable[Result]], items: Sequence[Item]) -> list[Result]:
        answers: dict[int, Result] = {}
        self._loop.call(self._in_time, ask, dict(enumerate(items)), self._deadline, answers)
        return [answers[i] for i in range(len(items))]

    async def _in_time(
        self,
        ask: Callable[[Item], Awaitable[Result]],
        items: Mapping[int, Item],
        deadline: float,
        answers: dict[int, Result],
    ) -> None:
        """Send all items before a deadline; see `ask_about`."""
        if self._is_closed:
            raise CancelledError
        try:
            with anyio.fail_after(max(0.0, deadline - time.monotonic())) as scope:
                self._scopes.add(scope)
                try:
                    await ask_about(ask, items, answers)
                    return
                finally:
                    self._scopes.discard(scope)
        except TimeoutError as error:
            missing = f"{len(items) - len(answers)} of {len(items)} requests"
            raise EngineTimeout(
                self._model.name, f"{self._server.where} did not answer {missing} in time"
            ) from error
        raise CancelledError  # closed meanwhile


def start(model: ModelRef, settings: EngineSettings) -> Engine:
    """Create an engine for a model that a server runs; nothing is sent yet."""
    return OpenaiEngine(model, settings)


def _from_now(seconds: float | None) -> float:
    """Deadline on the clock of `time.monotonic`; infinity for None."""
    return time.monotonic() + seconds if seconds is not None else float("inf")
