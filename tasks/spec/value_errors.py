"""Error messages for values with a wrong type or out of range."""

import re
from collections.abc import Mapping

from pydantic_core import ErrorDetails

from winnow.tasks.errors import did_you_mean, in_quotes

_DEMANDS = {
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "mapping_type": "must be a mapping of keys to values",
    "list_type": "must be a list",
    "sequence_str": "must be a list",
    "tuple_type": "must be a list",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "finite_number": "must be a finite number",
}
"""Requirement on a value, in YAML's words, by pydantic's type of error."""

_LIMITS = {
    "greater_than": ("must be greater than", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be less than", "lt"),
    "less_than_equal": ("must be at most", "le"),
}
"""Requirement on a number, and pydantic's name of its limit, by pydantic's type of error."""

_SIZES = {"thousand": 1_000, "k": 1_000, "million": 1_000_000, "m": 1_000_000}

_ENTRIES = {
    "models": "{name: NAME, provider: openai, model: MODEL}",
    "guardrails": '{name: NAME, template: "{{ prompt }}"}',
    "generate_configs": "{name: NAME, temperature: 0.7}",
    "prompts": '{name: NAME, template: "Answer: {{ input }}"}',
    "messages": '{role: user, content: "{{ input }}"}',
    "metrics": "{name: NAME, judge: exact}",
    "constraints": "{metric: NAME, at_least: 0.9}",
    "exclude": "{model: NAME}",
}
"""Typical list entry, by the key of the list."""

_MAPPINGS = {
    "stopping": "{delta: 0.05, budget: 400}",
    "groups": "{by: COLUMN}",
    "fields": "{input: COLUMN, target: COLUMN}",
    "prices": "{MODEL: {input: X, output: Y}} (USD per million tokens)",
    "execution": "{canaries: off}",
    "judge": "{type: exact}",
    "generate_config": "{temperature: 0.7, max_tokens: 256}",
}
"""Typical mapping, by its key."""

_VALUES = {
    "name": "my-campaign",
    "dataset": "data.csv",
    "models": "[gpt-4o]",
    "prompts": '["Answer: {{ input }}"]',
    "model": "gpt-4o",
    "template": '"Answer: {{ input }}"',
    "provider": "openai",
}
"""Typical values, by key, for keys that can be missing in a file."""


_TYPICAL = {
    "budget": "; write the maximum number of evaluations, such as 400, or remove budget for no limit",
    "batch_size": "; write a number such as 32, or remove it",
    "seed": "; write a number such as 0, or remove it",
    "limit": "; write a number of examples, such as 200, or remove it",
    "max_tokens": "; write a number such as 256",
    "temperature": "; write a number such as 0.0 (the likeliest tokens) or 0.7",
    "top_p": "; write a number such as 0.95",
    "epsilon": "; write a difference of scores, such as 0.02, or auto",
    "max_connections": "; write a number such as 64",
    "request_timeout": "; write seconds, such as 120",
    "max_retries": "; write a number such as 5",
    "holdout": "; write a share such as 0.3",
    "lookahead": "; write a number of rounds, such as 2, or auto",
    "tolerance": "; write a number such as 0.01",
}
"""Remedies, by key, for numbers that are out of range or values that are no numbers."""


def demand(detail: ErrorDetails) -> str:
    """The requirement on a value, such as "must be a whole number"."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"{words} {context[limit]:g}"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "too_short":
        least = context["min_length"]
        return f"must have at least {least} {'entry' if least == 1 else 'entries'}"
    if kind == "is_instance_of" and context.get("class") == "Sequence":
        return "must be a list"
    return _DEMANDS.get(kind) or _plain(detail["msg"])


def _plain(message: str) -> str:
    own = message.removeprefix("Value error, ")
    if own.startswith("Input should"):
        return own.replace("Input should", "must", 1)
    return own[:1].lower() + own[1:]


def shown(value: object) -> str:
    """Format a scalar as in a file: text in quotes, true and false in lower case.

    None is "nothing".
    """
    if value is None:
        return "nothing"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def remedy(detail: ErrorDetails, key: str) -> str:
    """The value to write, as the end of a message; empty if unknown."""
    kind, value = detail["type"], detail.get("input")
    if kind in _DEMANDS and value is None:
        return "; write a value after the colon"
    if kind in ("int_type", "float_type"):
        return _number(value, whole=kind == "int_type") or _TYPICAL.get(key.rpartition(".")[2], "")
    if kind in _LIMITS:
        last = key.rpartition(".")[2]
        if last == "epsilon" and isinstance(value, int | float) and 1 < value < 100:
            return f"; for {value:g} points write {value / 100:g}"
        return _probability(value) if last == "delta" else _TYPICAL.get(last, "")
    if kind == "bool_type":
        return "; write it without quotes" if value in ("true", "false") else ""
    if kind == "string_type" and isinstance(value, bool | int | float):
        return in_quotes(value)
    if kind == "literal_error" and isinstance(value, str):
        question = did_you_mean(value, re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected"))))
        return f"; {question}" if question else ""
    return _form(value, key, kind)


def missing_form(key: str) -> str:
    """Typical value of a missing key, as the end of a message.

    Empty if the key has no typical value.
    """
    found = next((each for each in (key, key.rpartition(".")[2]) if each in _VALUES), None)
    if found == "name" != key:
        return ", such as name: first"
    return "" if found is None else f", such as {found}: {_VALUES[found]}"


def _number(value: object, *, whole: bool) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}"
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if percent := re.fullmatch(r"(\d+(?:\.\d*)?) ?%", text):
        return "" if whole else f"; write {float(percent[1]) / 100:g}"
    if re.fullmatch(r"\d{1,3}([,_ ']\d{3})+", text):
        return f"; write {re.sub(r'[,_ ]|' + chr(39), '', text)}"
    if size := re.fullmatch(r"(\d+) ?([A-Za-z]+)", text):
        factor = _SIZES.get(size[2].lower())
        return f"; write {int(size[1]) * factor}" if factor else ""
    if re.fullmatch(r"-?\d+" if whole else r"-?\d+(\.\d+)?", text):
        return f"; write {text} without quotes"
    return f"; write {text.replace(',', '.')}" if re.fullmatch(r"\d+,\d+", text) and not whole else ""


def _probability(value: object) -> str:
    sentence = "; delta is the probability of a wrong answer: "
    if isinstance(value, int | float) and 50 < value < 100:
        return f"{sentence}for {value:g}% confidence write {1 - value / 100:.6g}"
    if isinstance(value, int | float) and 1 < value <= 50:
        return f"{sentence}for {value:g}% write {value / 100:g}"
    return f"{sentence}write 0.05 for 95% confidence"


def _form(value: object, key: str, kind: str) -> str:
    """The mapping or list to write instead of a value that is neither."""
    last = key.rpartition(".")[2]
    if kind in ("model_type", "dict_type", "mapping_type"):
        if key == "stopping" and isinstance(value, int) and not isinstance(value, bool):
            return f"; write stopping: {{budget: {value}}}"
        if re.fullmatch(r"execution\.prices\..+", key):
            return f"; write {last}: {{input: X, output: Y}} (USD per million tokens)"
        return f"; write {last}: {_MAPPINGS[last]}" if last in _MAPPINGS else ""
    if kind not in ("list_type", "sequence_str", "tuple_type", "too_short"):
        return ""
    if entry := _ENTRIES.get(last):
        if isinstance(value, Mapping) and value:
            entry = entry.replace("NAME", str(next(iter(value))), 1)
        if kind == "too_short":
            return f"; add one, such as - {entry}"
        return f"; write each entry on a line of its own: - {entry}"
    if kind == "too_short":
        return ""
    return f"; write [{value}]" if isinstance(value, str | int | float) else "; write [VALUE, VALUE]"
