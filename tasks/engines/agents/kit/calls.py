"""One attempt of an agent to answer one example: what it is given, and how it can fail."""

from typing import Protocol

from winnow.storage.json_types import JsonObject


class CallFailed(Exception):
    """An attempt has no usable reply.

    Args:
        detail: One sentence for people, without the agent's name.
        reason: One machine-readable word.
        may_retry: Whether it may be tried again, as far as `retries` allow.
        wait: Seconds that the agent asks to be left alone; None if it does not say.
        said: The reply, where there is one: it may say what the attempt cost.
    """

    def __init__(
        self,
        detail: str,
        *,
        reason: str = "agent_failed",
        may_retry: bool = False,
        wait: float | None = None,
        said: object = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = reason
        self.may_retry = may_retry
        self.wait = wait
        self.said = said


class Unreachable(CallFailed):
    """There is nothing to call at the moment, which says nothing of the example."""


class Caller(Protocol):
    """Runs an agent. Several threads call it at once."""

    def answer(self, message: JsonObject) -> object:
        """Make one attempt within `timeout`.

        Args:
            message: JSON values: `example` (its fields without the target), `prompt` if there is one (text,
                or a list of messages), `params`, `sampling`, `seed`, and `limits` if there are any.

        Returns:
            A text, or a JSON object with `output` and, if known, `usage`, `cost`, `metrics` and `trace`.

        Raises:
            CallFailed: If there is no reply.
            EngineError: If no example can be answered.
        """

    def close(self) -> None:
        """End all attempts at once; may be called again."""
