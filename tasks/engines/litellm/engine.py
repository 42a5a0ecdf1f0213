"""Engine of a model behind an API that litellm supports, with the same checks as for OpenAI's servers."""

import json

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import is_continued
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.litellm.worker_connection import LitellmConnection
from winnow.tasks.engines.openai.engine import OpenaiEngine
from winnow.tasks.engines.openai.requests import prompt_fields, why_unsendable
from winnow.tasks.engines.openai.server_calls import Connection, ServerInfo
from winnow.tasks.engines.protocol import Engine, GenerationFailure, ModelRef, Request, Sampling
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.server_keys import UNKNOWN, why_unaskable


class LitellmEngine(OpenaiEngine):
    """A model behind an API that litellm supports, called from a separate process; chats only.

    Retries, concurrency and the checks of answers are those of `OpenaiEngine`.

    Args:
        model: `model` is litellm's name of it, such as "anthropic/claude-x", and `model_base_url` is set.
        settings: See `OpenaiEngine`.

    Raises:
        EngineLoadFailed: If the model should not chat, or its `model_args` contain forbidden keys.
    """

    def __init__(self, model: ModelRef, settings: EngineSettings) -> None:
        self._takes: frozenset[str] = frozenset()
        self._version = ""
        super().__init__(model, settings)

    @property
    def identity(self) -> str:
        """Version of litellm, and id of the model; waits until litellm is loaded, and contacts no server."""
        self._probed()
        return " ".join(filter(None, ["litellm", self._version, self._model.model, self._seedless]))

    @property
    def pid(self) -> int:
        """Process id of the litellm process."""
        return self._connection.pid

    def _check_args(self, model: ModelRef) -> None:
        if why := why_unaskable(model.model, chat=model.chat, model_args=model.model_args):
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
            why = "litellm tells no log-probabilities that are the same for all APIs"
        elif is_continued(request.asked):
            why = "not every API continues an assistant's message; end messages with the user"
        elif lacking := sorted(_wanted(request.sampling) - self._takes):
            why = f"litellm says that this API has no {lacking[0]}; remove it"
        if why is not None:
            return GenerationFailure(reason="refused", detail=why)
        return why_unsendable(self._model, request, is_vllm=False)

    def _body(self, request: Request, info: ServerInfo) -> JsonObject:
        sampling = request.sampling
        body = {
            **prompt_fields(self._model, request.asked),
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            **_asked_for(sampling),
            **dict(self._model.model_args),
        }
        if sampling.temperature > 0.0 and "seed" in self._takes and "seed" not in self._model.model_args:
            body["seed"] = request.seed
        return {key: value for key, value in body.items() if value is not None}


def _asked_for(sampling: Sampling) -> JsonObject:
    """Optional part of a call: the settings in the spec."""
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
    """Start a litellm process for the model; it continues to load after this returns, and sends nothing."""
    return LitellmEngine(model, settings)
