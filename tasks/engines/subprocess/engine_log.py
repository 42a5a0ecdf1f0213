"""What the log is told of engines."""

import logging

from winnow.tasks.engines.errors import EngineError, EngineLoadFailed

LOGGER = logging.getLogger("winnow.engines")


def log_end(error: EngineError) -> None:
    """An engine did not come up, died, or took too long; whether it is started again is not said here."""
    event = "load_failed" if isinstance(error, EngineLoadFailed) else "engine_ended"
    LOGGER.warning("%s", error, extra={"event": event, "model": error.model})
