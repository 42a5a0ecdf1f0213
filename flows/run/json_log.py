"""Formatter of JSON log lines."""

import datetime as dt
import logging

from pythonjsonlogger.core import merge_record_extra
from pythonjsonlogger.json import JsonFormatter


class JsonLine(JsonFormatter):
    """Writes a record as a JSON object.

    Its keys are timestamp, level, logger, event, campaign, round, candidate, message, and the event's own.
    """

    def add_fields(
        self, log_data: dict[str, object], record: logging.LogRecord, message_dict: dict[str, object]
    ) -> None:
        """See `JsonFormatter`."""
        time = dt.datetime.fromtimestamp(record.created, dt.UTC)
        log_data["timestamp"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        log_data["level"] = record.levelname.lower()
        log_data["logger"] = record.name
        for name in ("event", "campaign", "round", "candidate"):
            log_data[name] = getattr(record, name, None)
        log_data["message"] = record.message
        merge_record_extra(record, log_data, reserved={*self._skip_fields, *log_data})
        log_data.update(message_dict)
