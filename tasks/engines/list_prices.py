"""List prices of the models of public APIs.

`list_prices.json` is an extract of LiteLLM's public table (MIT licence). If LiteLLM is installed, its
complete table is read instead, so that a new release of LiteLLM provides new prices.
"""

import json
import math
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.protocol import ModelRef

CURRENCY = "USD"

EXTRACT = Path(__file__).with_name("list_prices.json")
EXTRACT_OF = "LiteLLM 1.81.16"
WHOLE = "litellm/model_prices_and_context_window_backup.json"
"""Path of the table in LiteLLM's distribution; importing LiteLLM takes seconds and uses the network."""

MILLION = 1_000_000


def list_price(model: ModelRef) -> tuple[float, float] | None:
    """List prices in `CURRENCY` per million input and output tokens; None if unknown.

    A model with its own base URL has no list price, because the operator of that server sets the price.
    """
    if model.model_base_url is not None or model.provider not in ("openai", "litellm"):
        return None
    api, _, bare = model.model.partition("/")
    names = [model.model, *([bare] if api in ("openai", "anthropic") else [])]
    entry: JsonView = next((_table()[1][each] for each in names if each in _table()[1]), {})
    prices = [entry.get(f"{side}_cost_per_token") for side in ("input", "output")]
    known = [
        MILLION * each
        for each in prices
        if isinstance(each, int | float) and math.isfinite(each) and each >= 0.0
    ]
    return (known[0], known[1]) if len(known) == len(prices) else None


def source_of_prices() -> str:
    """Name of the table of prices in use, such as "LiteLLM 1.81.16"."""
    return _table()[0]


@cache
def _table() -> tuple[str, JsonView]:
    """The name of the table, and its entries by model."""
    try:
        litellm = distribution("litellm")
        return f"LiteLLM {litellm.version}", json.loads(
            Path(str(litellm.locate_file(WHOLE))).read_text("utf-8")
        )
    except (PackageNotFoundError, OSError, ValueError):
        return EXTRACT_OF, json.loads(EXTRACT.read_text("utf-8"))
