"""Which selectors of duels use a model of the candidates; light to import, for commands that only read."""

from collections.abc import Mapping
from typing import Any

NEEDS_FEATURES = "llm-po-bt"
FEATURES = "features"


def uses_features(selector: Mapping[str, Any]) -> bool:
    """Whether a selector, as a stored spec holds it, is told what the candidates are made of."""
    return selector.get("name") == NEEDS_FEATURES or selector.get("params", {}).get(FEATURES) is not None
