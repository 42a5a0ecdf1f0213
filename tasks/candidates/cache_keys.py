"""Cache keys of generations and identities of models: SHA-256 of canonical JSON.

One function computes the key of a generation, both for storing it and for finding it. The part that requests
share, everything except their prompts, is serialised once.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from winnow.storage.json_types import JsonObject
from winnow.tasks.data.file_digests import file_digest
from winnow.tasks.engines.agents.kit.engine import settings_of
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.engines.images import Image
from winnow.tasks.engines.known_providers import AGENTS, FUNCTION, REMOTE
from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.engines.server_keys import server_url
from winnow.tasks.text.canonical_json import canonical_json, digest, sha256


def fingerprint_model(model: ModelRef) -> str:
    """Identity of a model's weights: a checkpoint's content, or an id and revision on a hub.

    An adapter, or a chat template that replaces the model's own, is included. For a model on a server the
    identity consists of provider, id, revision and address, because two servers can hold different weights
    under one id. If the user declares `served_identity`, it replaces the address. For an agent it consists of
    provider and the agent's own identity.
    """
    found = _fingerprint_weights(model)
    if model.chat_template is None:
        return found
    return sha256({"base": found, "chat_template": model.chat_template})


def _fingerprint_weights(model: ModelRef) -> str:
    if model.provider in AGENTS:
        return sha256({"provider": model.provider, **settings_of(model.provider, model.setup).identity()})
    if model.provider in REMOTE:
        held = {"provider": model.provider, "model": model.model, "revision": model.revision}
        if model.served_identity is not None:
            return sha256({**held, "served_identity": model.served_identity})
        return sha256({**held, "server": server_url(model.model_base_url)})
    folder = Path(model.model)
    if model.provider == FUNCTION:
        return sha256({"candidate": model.model, "name": model.name, "function": model.revision})
    if folder.is_dir():
        base = _fingerprint_folder(folder)
    else:
        base = sha256({"model": model.model, "revision": model.revision})
    return (
        base if model.lora is None else sha256({"base": base, "lora": _fingerprint_folder(Path(model.lora))})
    )


def _fingerprint_folder(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\0".encode())
    return found.hexdigest()


def is_greedy(model: ModelRef, sampling: Sampling) -> bool:
    """Whether equal requests always give the same text; False for agents, whose sampling is unknown."""
    return sampling.temperature == 0.0 and model.provider not in AGENTS


def request_seed(campaign_seed: int, content: Mapping[str, object]) -> int:
    """Seed of a request, in [0, 2**31), from the campaign's seed and the request's content."""
    return seed_of(canonical_json([campaign_seed, content]))


def seed_of(text: str) -> int:
    """Number in [0, 2**31) derived from a text by its digest."""
    return int(digest(text)[:8], 16) >> 1


def request_content(
    model: ModelRef,
    fingerprint: str,
    prompt: Prompt,
    sampling: Sampling,
    replicate: int,
    continuations: Sequence[str] = (),
    is_greedy: bool = False,
    images: Sequence[Image] = (),
) -> JsonObject:
    """Everything except the seed that determines an output, as JSON values."""
    content: JsonObject = {
        "model": fingerprint,
        "provider": model.provider,
        "model_args": dict(model.model_args),
        "chat": model.chat,
        "chat_template_args": dict(model.chat_template_args),
        "prompt": prompt,  # a list of messages differs from the text that stores it
        "replicate": replicate,
        **sampling.as_json(),
    }
    if model.reasoning is not None:
        content["reasoning"] = list(model.reasoning)
    # Absent if unused, as in the keys of most outputs.
    content["continuations"] = list(continuations)
    content["is_greedy"] = is_greedy
    content["images"] = [each.as_json() for each in images]
    return {key: value for key, value in content.items() if value or key not in RARE}


RARE = ("choices", "continuations", "is_greedy", "images")
"""Keys that are absent from a request's content if unused."""


def generation_key(content: Mapping[str, object], seed: int) -> str:
    """Key under which a generation is stored."""
    return sha256({**content, "seed": seed})


VARYING = ("prompt", "replicate", "seed")
"""Keys that differ between requests, in the order of canonical JSON."""

LAST = "\U0010ffff"
"""Text that sorts after all keys."""


class RequestKeys:
    """Keys of requests to one model with one sampling setting, without log-likelihood scoring.

    They equal those of `request_seed` and `generation_key` for `request_content`, in a fifth of the time.

    Args:
        model: The model.
        fingerprint: Identity of its weights.
        sampling: Sampling settings.
    """

    def __init__(self, model: ModelRef, fingerprint: str, sampling: Sampling) -> None:
        content = request_content(model, fingerprint, "", sampling, 0)
        spelled = {key: f"{canonical_json(key)}:{canonical_json(value)}," for key, value in content.items()}
        parts = [
            "".join(spelled[key] for key in sorted(spelled) if before < key < after)
            for before, after in pairwise(("", *VARYING, LAST))
        ]
        self._to_prompt, self._to_replicate, self._to_seed, rest = parts
        self._rest = rest.removesuffix(",") + "}"
        self._is_greedy = is_greedy(model, sampling)

    def of(self, prompt: Prompt, replicate: int, campaign_seed: int) -> tuple[int, str]:
        """Seed of a request, and the key under which its output is stored."""
        common = (
            f'{{{self._to_prompt}"prompt":{canonical_json(prompt)},'
            f'{self._to_replicate}"replicate":{replicate},{self._to_seed}'
        )
        seed = 0 if self._is_greedy else seed_of(f"[{campaign_seed},{common}{self._rest}]")
        return seed, digest(f'{common}"seed":{seed},{self._rest}')
