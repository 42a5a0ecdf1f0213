"""Seeds and keys of requests that have all but their prompts in common, which is spelled out once for all."""

from itertools import pairwise

from winnow.tasks.candidates.cache_keys import canonical_json, digest, request_content, seed_of
from winnow.tasks.engines.chat.messages import Prompt
from winnow.tasks.engines.protocol import ModelRef, Sampling

VARYING = ("prompt", "replicate", "seed")
"""In the order of canonical JSON."""

LAST = "\U0010ffff"
"""Comes after all keys."""


class RequestKeys:
    """Of one model under one way of sampling, where nothing is weighed.

    What it says is what `request_seed` and `generation_key` say of `request_content`, in a fifth of the time.

    Args:
        model: Which is asked.
        fingerprint: What its weights are.
        sampling: How tokens are drawn.
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
        self._is_greedy = sampling.temperature == 0.0

    def of(self, prompt: Prompt, replicate: int, campaign_seed: int) -> tuple[int, str]:
        """The seed of a request and the key that its text is stored under."""
        common = (
            f'{{{self._to_prompt}"prompt":{canonical_json(prompt)},'
            f'{self._to_replicate}"replicate":{replicate},{self._to_seed}'
        )
        seed = 0 if self._is_greedy else seed_of(f"[{campaign_seed},{common}{self._rest}]")
        return seed, digest(f'{common}"seed":{seed},{self._rest}')
