"""Engines of other packages or programs; what they raise becomes a sentence that names the engine."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint

from winnow.tasks.engines.errors import EngineError, EngineLoadFailed
from winnow.tasks.engines.protocol import Answer, Completion, Engine, GenerationFailure, ModelRef, Request
from winnow.tasks.plugins.entry_points import Plugin, calling

NO_LIKELIHOODS = (
    "tells no log-likelihoods of continuations, which this output_type needs; choose another provider"
)

NOT_GREEDY = (
    "does not tell whether greedy decoding gives a continuation (is_greedy, with the continuation or nothing "
    "as the text), which output_type: loglikelihood needs; choose another provider"
)


class PluginEngine:
    """Start and call a plug-in's engine, and check what it returns against the requests.

    Args:
        entry: The entry point of a callable that takes a `ModelRef` and an `EngineSettings`.
        model: The model to load.
        settings: The settings of engines.

    Raises:
        EngineError: If the engine raises it.
        PluginFailed: If anything else is raised.
    """

    def __init__(self, entry: EntryPoint, model: ModelRef, settings: object) -> None:
        self._plugin = Plugin(kind="engine", name=entry.name, location=entry.value)
        self._model = model.name
        with calling(self._plugin, EngineError):
            self._inner: Engine = entry.load()(model, settings)

    @property
    def identity(self) -> str:
        """See `Engine`."""
        with calling(self._plugin, EngineError):
            return str(self._inner.identity)

    @property
    def joins(self) -> bool:
        """As in `JoinsBatches`; False if the engine does not say."""
        with calling(self._plugin, EngineError):
            return bool(getattr(self._inner, "joins", False))

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """See `Engine`.

        Raises:
            PluginFailed: If anything but an `EngineError` is raised, or there is not one answer a request.
        """
        with calling(self._plugin, EngineError):
            answers = list(self._inner.generate(requests))
            if len(answers) != len(requests):
                raise ValueError(f"generate returned {len(answers)} answers to {len(requests)} requests")
            for request, each in zip(requests, answers, strict=True):
                if not isinstance(each, Completion | GenerationFailure):
                    raise TypeError(
                        f"generate returns Completions and GenerationFailures, got {type(each).__name__}"
                    )
                if isinstance(each, Completion) and not _weighs(each, request.continuations):
                    raise EngineLoadFailed(self._model, f"engine {self._plugin.name!r} {NO_LIKELIHOODS}")
                if isinstance(each, Completion) and request.is_greedy and not _says_greedy(each, request):
                    raise EngineLoadFailed(self._model, f"engine {self._plugin.name!r} {NOT_GREEDY}")
            return answers

    def close(self) -> None:
        """See `Engine`."""
        with calling(self._plugin, EngineError):
            self._inner.close()


def _weighs(answer: Completion, continuations: Sequence[str]) -> bool:
    return not continuations or set(continuations) == (answer.choice_logprobs or {}).keys()


def _says_greedy(answer: Completion, request: Request) -> bool:
    wanted = {True: request.continuations[0], False: ""}
    return isinstance(answer.is_greedy, bool) and answer.text == wanted[answer.is_greedy]
