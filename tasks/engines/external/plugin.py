"""Adapt engines of other packages or programs; their exceptions name the engine."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint

from winnow.tasks.engines.errors import EngineError, EngineLoadFailed
from winnow.tasks.engines.protocol import (
    Answer,
    AnswersAsTheyCome,
    Came,
    Completion,
    Engine,
    GenerationFailure,
    ModelRef,
    Request,
)
from winnow.tasks.plugins.entry_points import Plugin, calling

NO_LIKELIHOODS = (
    "returns no log-likelihoods of continuations, which this output_type needs; choose another provider"
)

NOT_GREEDY = (
    "does not report whether greedy decoding gives a continuation (is_greedy; the text is the continuation "
    "or empty), which output_type: loglikelihood needs; choose another provider"
)


class PluginEngine:
    """Start and call a plug-in's engine, and check its answers against the requests.

    Args:
        entry: Entry point of a callable that takes a `ModelRef` and an `EngineSettings`.
        model: The model to load.
        settings: The settings of engines.

    Raises:
        EngineError: If the engine raises it.
        PluginFailed: If the engine raises anything else.
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
        """Whether new requests can join, as in `JoinsBatches`; False without this attribute."""
        with calling(self._plugin, EngineError):
            return bool(getattr(self._inner, "joins", False))

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """See `Engine`.

        Raises:
            PluginFailed: If the engine raises anything but an `EngineError`, or returns too few or too many
                answers.
        """
        with calling(self._plugin, EngineError):
            return self._checked(requests, list(self._inner.generate(requests)))

    def generate_each(self, requests: Sequence[Request], came: Came) -> list[Answer]:
        """See `AnswersAsTheyCome`; an engine without that interface reports its answers together.

        Raises:
            PluginFailed: As `generate` does.
        """
        if not isinstance(self._inner, AnswersAsTheyCome):
            return self.generate(requests)

        def checked_first(place: int, answer: Answer) -> None:
            self._require_sound(requests[place], answer)
            came(place, answer)

        with calling(self._plugin, EngineError):
            return self._checked(requests, list(self._inner.generate_each(requests, checked_first)))

    def _checked(self, requests: Sequence[Request], answers: list[Answer]) -> list[Answer]:
        if len(answers) != len(requests):
            raise ValueError(f"generate returned {len(answers)} answers to {len(requests)} requests")
        for request, each in zip(requests, answers, strict=True):
            self._require_sound(request, each)
        return answers

    def _require_sound(self, request: Request, answer: Answer) -> None:
        """Refuse a value that is not an answer, and an answer that lacks a requested part."""
        if not isinstance(answer, Completion | GenerationFailure):
            raise TypeError(
                f"generate returns Completions and GenerationFailures, got {type(answer).__name__}"
            )
        if isinstance(answer, Completion) and not _weighs(answer, request.continuations):
            raise EngineLoadFailed(self._model, f"engine {self._plugin.name!r} {NO_LIKELIHOODS}")
        if isinstance(answer, Completion) and request.is_greedy and not _says_greedy(answer, request):
            raise EngineLoadFailed(self._model, f"engine {self._plugin.name!r} {NOT_GREEDY}")

    def close(self) -> None:
        """See `Engine`."""
        with calling(self._plugin, EngineError):
            self._inner.close()


def _weighs(answer: Completion, continuations: Sequence[str]) -> bool:
    return not continuations or set(continuations) == (answer.choice_logprobs or {}).keys()


def _says_greedy(answer: Completion, request: Request) -> bool:
    wanted = {True: request.continuations[0], False: ""}
    return isinstance(answer.is_greedy, bool) and answer.text == wanted[answer.is_greedy]


def takes_no_device(entry: EntryPoint) -> bool:
    """Whether an engine's class or function has `devices = 0`; False if loading it fails."""
    try:
        return getattr(entry.load(), "devices", None) == 0
    except Exception:  # starting the engine reports it
        return False
