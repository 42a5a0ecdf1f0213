"""Short forms in a campaign's file, expanded to full values when the file is read.

A campaign's identity does not depend on which form its file uses.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product

from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.tasks.engines.agents.kit.engine import provider_of
from winnow.tasks.engines.known_providers import AGENTS, REMOTE, is_agent
from winnow.tasks.engines.providers import is_provider, provider_names

DELTA = 0.05
"""Error probability of a file that lacks the selector, the budget or both, and of `winnow.select`."""

OPENAI_NAME = re.compile(r"(?:gpt|chatgpt)-[^/:]+|o\d[^/:]*")
"""Matches the names of the models on OpenAI's own server."""

LONGEST_SHORT_NAME = 40


def model_of(text: str) -> JsonObject:
    """Expand a short text to a model; served models receive chat requests.

    Args:
        text: `PROVIDER:MODEL`, `http://HOST/v1#SERVED-NAME`, a folder, a model id of a hub, or the name of
            one of OpenAI's models.

    Raises:
        ValueError: The text names a server without a model, or an unknown provider.
    """
    if re.match("https?://", text):
        url, _, served = text.partition("#")
        if not served:
            raise ValueError(f"{text!r} names a server without a model; write {url}#SERVED-NAME")
        name = short_name(served)
        return {"name": name, "provider": "openai", "model": served, "model_base_url": url, "chat": True}
    provider, colon, model = text.partition(":")
    if is_openai(text):
        provider, colon, model = "openai", ":", text
    if not colon or provider.startswith((".", "/", "~")):
        return {"name": short_name(text), "model": text}
    if not model or not is_provider(provider):
        known = ", ".join(f"{each}:" for each in provider_names())
        raise ValueError(
            f"{text!r} is not a model; write one of {known} before its name, http://HOST/v1#SERVED-NAME, a "
            "folder, or the id of a hub"
        )
    if provider in AGENTS:
        return {
            "name": short_name(model),
            "provider": provider,
            **provider_of(provider).settings.from_text(model),
        }
    chats = {"chat": True} if provider in REMOTE else {}
    return {"name": short_name(model), "provider": provider, "model": model, **chats}


def is_openai(text: str) -> bool:
    """Whether a text is the name of one of OpenAI's models."""
    return OPENAI_NAME.fullmatch(text) is not None


def short_name(text: str) -> str:
    """Last part of a path or an id, as a valid name.

    "model" if no character of it is allowed in a name.
    """
    last = text.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._]+", "-", last)[:LONGEST_SHORT_NAME].strip("-._") or "model"


def models_of(given: object) -> object:
    """Expand short texts in a list of models; a single text becomes a list of one."""
    return _written_out(given, lambda text, _: model_of(text))


MOST_OF_A_GRID = 1_000
"""Maximum number of combinations of the `params` of one agent."""


def crossed(entry: object) -> list[object]:
    """Expand an agent's entry into one entry for each combination of its `params`.

    A list in `params` holds alternative values. The name of a combination contains its values, as in
    `agent_k-3`. An entry without lists is returned unchanged.

    Raises:
        ValueError: The combinations are too many, a list is empty, or two combinations have the same name.
    """
    if not isinstance(entry, Mapping) or not is_agent(entry.get("provider")):
        return [entry]
    params = entry.get("params")
    if not isinstance(params, Mapping) or not any(isinstance(each, list) for each in params.values()):
        return [entry]
    name = str(entry.get("name"))
    lists = {key: value for key, value in params.items() if isinstance(value, list)}
    if empty := [key for key, value in lists.items() if not value]:
        raise ValueError(f"params.{empty[0]} of {name} is an empty list; add values, or remove {empty[0]}")
    if math.prod(map(len, lists.values())) > MOST_OF_A_GRID:
        raise ValueError(f"params of {name} have more than {MOST_OF_A_GRID} combinations; list fewer values")
    found: list[object] = []
    names: set[str] = set()
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        values_shown = [f"{key}-{value}" for key, value in chosen.items() if len(lists[key]) > 1]
        own = "_".join([name, *(re.sub(r"[^A-Za-z0-9._-]+", "-", each) for each in values_shown)])
        if own in names:
            raise ValueError(
                f"two combinations of the params of {name} would both be called {own}; remove one of "
                "the values"
            )
        names.add(own)
        found.append({**entry, "name": own, "entry": name, "params": {**params, **chosen}})
    return found


def prompts_of(given: object) -> object:
    """Expand short texts in a list of prompts, named by position: `prompt-1`."""
    return _written_out(given, lambda text, number: {"name": f"prompt-{number}", "template": text})


def _written_out(given: object, entry_of: Callable[[str, int], JsonObject]) -> object:
    """Expand the texts of a list, and number entries that would have the same name."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not any(isinstance(each, str) for each in listed):
        return listed
    found = [entry_of(each, at) if isinstance(each, str) else each for at, each in enumerate(listed, 1)]
    counts = Counter(str(each.get("name")) for each in found if isinstance(each, Mapping))
    numbers: Counter[str] = Counter()
    for each, written in zip(found, listed, strict=True):
        if isinstance(written, str) and counts[each["name"]] > 1:
            numbers[each["name"]] += 1
            each["name"] += f"-{numbers[each['name']]}"
    return found


def judge_of(given: object) -> object:
    """Expand a judge that is given as its name only, or as FILE.py:FUNCTION."""
    if not isinstance(given, str):
        return given
    return {"type": "python", "path": given} if ".py:" in given else {"type": given}


def selector_of(given: object) -> object:
    """Expand a selector that is given as its name only."""
    return {"name": given} if isinstance(given, str) else given


def dataset_of(given: object) -> object:
    """Expand a dataset that is given as its files only."""
    return {"path": given} if isinstance(given, str | list) else given


def with_defaults(values: object) -> object:
    """Add defaults for objective, selector, delta and prompts to a file's values.

    An objective without a default selector gets no default selector and no default error probability. A file
    with both a selector and a budget gets no default error probability. A campaign of agents only gets an
    empty list of prompts.
    """
    if not isinstance(values, Mapping):
        return values
    values = {"objective": OBJECTIVES[0], **values}
    if values["objective"] not in OBJECTIVES:
        return values
    if "prompts" not in values and are_agents(values.get("models")):
        values = {**values, "prompts": []}
    selector = traits_of(str(values["objective"])).default_selector
    stopping = values.get("stopping", {})
    if selector is None or not isinstance(stopping, Mapping):
        return values
    if "selector" not in values or "budget" not in stopping:
        stopping = {"delta": DELTA, **stopping}
    return {"selector": {"name": selector}, **values, "stopping": stopping}


def are_agents(models: object) -> bool:
    """Whether all models of a file are agents, which need no prompt."""
    listed = [models] if isinstance(models, str) else models
    providers = [
        each.partition(":")[0]
        if isinstance(each, str)
        else each.get("provider")
        if isinstance(each, Mapping)
        else None
        for each in (listed if isinstance(listed, list) else ())
    ]
    return bool(providers) and all(map(is_agent, providers))
