"""Types of rows and JSON documents for readers.

Keys are names, values are of any JSON type. The type of a value follows from its column, or from the writer
of the document.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
"""Values of a row by column."""

JsonObject = dict[str, Any]
"""Object of a JSON document: a spec, a claim, a record."""

JsonArray = list[Any]
"""Array of a JSON document."""

JsonView = Mapping[str, Any]
"""Read-only JSON object or row."""

Arms = Sequence[Any]
"""Arms of a round's comparisons: one index each, or a pair of indices for duels."""
