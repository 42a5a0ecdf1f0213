"""Types of rows and JSON documents for those who read them: names, and values of any JSON type.

A reader knows what a value is by its column, or by the writer of the document.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
"""The values of a row by their columns."""

JsonObject = dict[str, Any]
"""An object of a JSON document: a spec, a claim, a record."""

JsonArray = list[Any]
"""An array of a JSON document."""

JsonView = Mapping[str, Any]
"""A JSON object or a row of somebody else's, to read alone."""

Arms = Sequence[Any]
"""Of the comparisons of a round: one index each, or of duels a pair of them."""
