"""Canonical JSON, and its SHA-256."""

import hashlib
import json

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Shared encoder, because `json.dumps` creates one for each call."""


def canonical_json(value: object) -> str:
    """The canonical JSON of a value: with sorted keys, without spaces.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    return _CANONICAL.encode(value)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256(value: object) -> str:
    """SHA-256 of a JSON value, in hexadecimal."""
    return digest(canonical_json(value))
