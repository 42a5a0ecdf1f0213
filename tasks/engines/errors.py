"""Errors of an engine as a whole; a single bad request is a `GenerationFailure` instead.

* EngineError
  - EngineLoadFailed    the model cannot be loaded             (permanent: fails its candidates)
  - EngineDied          the engine ended by itself             (transient: start another one)
  - EngineTimeout       the engine did not answer in time      (transient: start another one)
* ClusterUnavailable    engines have no machines to run on      (start the cluster, or name another)
"""

from winnow.tasks.errors import WinnowError

OUT_OF_MEMORY = (
    "out of memory",
    "outofmemory",
    "memoryerror",
    "cannot allocate memory",
    "free memory on device",
    "error in memory profiling",
)
"""Lower-case phrases by which libraries report that memory is short now, or that another process freed memory
meanwhile."""


class EngineError(WinnowError):
    """An engine cannot answer.

    The message may end with the last lines of the engine's log. The constructor's arguments are the
    exception's `args`, so that it survives pickling by a task runner.
    """

    has_lines = True

    def __init__(self, model: str, why: str) -> None:
        super().__init__(model, why)
        self.model = model
        self.why = why

    def _sentence(self) -> str:
        return f"model {self.model!r}: {self.why}"


class EngineLoadFailed(EngineError):
    """The model cannot be loaded, and a new attempt would not help."""


class EngineDied(EngineError):
    """The engine ended by itself, while loading or generating."""


class EngineTimeout(EngineError):
    """The engine did not answer within its time limit."""


class ClusterUnavailable(WinnowError):
    """The machines on which engines should run cannot be reached."""


def is_transient(error: BaseException | None) -> bool:
    """Whether the same request may succeed on a fresh engine."""
    return isinstance(error, EngineDied | EngineTimeout)


def lacks_memory(why: str) -> bool:
    """Whether a load error reports a lack of memory, so that a later attempt may succeed."""
    return any(words in why.lower() for words in OUT_OF_MEMORY)


def one_sentence(error: BaseException, limit: int = 400) -> str:
    """Kind and message of a foreign exception, on one line of at most `limit` characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
