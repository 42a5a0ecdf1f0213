"""Short forms of parts of a campaign's file, and the full values that they mean.

They are expanded when the file is read, so a campaign is the same in either form.
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
"""Error probability for a short file, and for `winnow.select`."""

OPENAI_NAME = re.compile(r"(?:gpt|chatgpt)-[^/:]+|o\d[^/:]*")
"""Matches the names of the models of OpenAI's own server."""

LONGEST_SHORT_NAME = 40


def model_of(text: str) -> JsonObject:
    """The model that a short text means; served models get chat requests.

    Args:
        text: `PROVIDER:MODEL`, `http://HOST/v1#SERVED-NAME`, a folder, the id of a hub, or the name of one of
            OpenAI's models.

    Raises:
        ValueError: If the text names a server without a model, or an unknown provider.
    """
    if re.match("https?://", text):
        url, _, served = text.partition("#")
        if not served:
            raise ValueError(f"{text!r} names a server and no model; write {url}#SERVED-NAME")
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
    """The last part of a path or an id as a name; "model" if none of it is allowed in a name."""
    last = text.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._]+", "-", last)[:LONGEST_SHORT_NAME].strip("-._") or "model"


def models_of(given: object) -> object:
    """A list of models with texts expanded; a single text is a list of one."""
    return _written_out(given, lambda text, _: model_of(text))


MOST_OF_A_GRID = 1_000
"""Maximum number of combinations of the `params` of one agent."""


def crossed(entry: object) -> list[object]:
    """Expand an agent's entry into one entry for each combination of its `params`.

    A list in `params` holds alternative values. The name of a combination contains its values, as in
    `agent_k-3`. An entry without lists is returned unchanged.

    Raises:
        ValueError: If there are too many combinations, a list is empty, or two combinations have the same
            name.
    """
    if not isinstance(entry, Mapping) or not is_agent(entry.get("provider")):
        return [entry]
    params = entry.get("params")
    if not isinstance(params, Mapping) or not any(isinstance(each, list) for each in params.values()):
        return [entry]
    name = str(entry.get("name"))
    lists = {key: value for key, value in params.items() if isinstance(value, list)}
    if empty := [key for key, value in lists.items() if not value]:
        raise ValueError(f"params.{empty[0]} of {name} is an empty list; give it values, or remove it")
    if math.prod(map(len, lists.values())) > MOST_OF_A_GRID:
        raise ValueError(f"params of {name} have more than {MOST_OF_A_GRID} combinations; name fewer values")
    found: list[object] = []
    names: set[str] = set()
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        told = [f"{key}-{value}" for key, value in chosen.items() if len(lists[key]) > 1]
        own = "_".join([name, *(re.sub(r"[^A-Za-z0-9._-]+", "-", each) for each in told)])
        if own in names:
            raise ValueError(
                f"two combinations of the params of {name} would both be called {own}; name them apart"
            )
        names.add(own)
        found.append({**entry, "name": own, "entry": name, "params": {**params, **chosen}})
    return found


def prompts_of(given: object) -> object:
    """A list of prompts with texts expanded; each is named by its position."""
    return _written_out(given, lambda text, number: {"name": f"prompt-{number}", "template": text})


def _written_out(given: object, entry_of: Callable[[str, int], JsonObject]) -> object:
    """A list with texts expanded, each with a unique name."""
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
    """A judge, which may be given as its name, or as FILE.py:FUNCTION, only."""
    if not isinstance(given, str):
        return given
    return {"type": "python", "path": given} if ".py:" in given else {"type": given}


def selector_of(given: object) -> object:
    """A selector, which may be given as its name only."""
    return {"name": given} if isinstance(given, str) else given


def dataset_of(given: object) -> object:
    """A dataset, which may be given as its files only."""
    return {"path": given} if isinstance(given, str | list) else given


def with_defaults(values: object) -> object:
    """Add the default objective, selector, budget and error probability to a campaign's values.

    Objectives without a default selector have no such defaults. A file with a selector and a budget, but no
    error probability, uses none. A campaign of agents alone can leave out prompts.
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
