"""The log of a flow run on Prefect's pages: where the campaign stands now and then, and what went wrong."""

import logging
from uuid import UUID

WINNOW = logging.getLogger("winnow")


class RunLog:
    """Sends lines to Prefect's server, and what Winnow logs meanwhile, whichever thread it comes from.

    Args:
        run_id: Of the flow run.
    """

    def __init__(self, run_id: UUID) -> None:
        from prefect.logging.handlers import APILogHandler

        self._handler = APILogHandler()
        self._handler.setLevel(logging.INFO)
        self._handler.addFilter(_OfRun(run_id))
        # Of its own, so that a terminal that shows progress does not show it twice.
        self._logger = logging.Logger("winnow.run", logging.INFO)
        self._logger.addHandler(self._handler)
        WINNOW.addHandler(self._handler)

    def info(self, line: str) -> None:
        """Log a line for the run alone."""
        self._logger.info("%s", line)

    def close(self) -> None:
        """Send what is left, and listen no longer."""
        WINNOW.removeHandler(self._handler)
        self._handler.flush()


class _OfRun(logging.Filter):
    """Says of each line which flow run it is of; no line is kept back."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__()
        self._run_id = str(run_id)

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        record.flow_run_id = self._run_id
        return True
