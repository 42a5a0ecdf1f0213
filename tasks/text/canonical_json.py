"""Canonical JSON, and SHA-256 of it."""

import hashlib
import json

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Shared encoder: `json.dumps` makes one per call."""


def canonical_json(value: object) -> str:
    """The canonical text of a value: sorted keys, no spaces, no NaN."""
    return _CANONICAL.encode(value)


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256(value: object) -> str:
    """SHA-256 of a JSON value, hexadecimal."""
    return digest(canonical_json(value))
