"""Names of providers and related constants, for modules that import no engine."""

from pathlib import Path

AGENTS = frozenset(
    path.stem for path in Path(__file__).with_name("agents").glob("*.py") if not path.stem.startswith("_")
)
"""Providers of agents (programs, endpoints, functions): names of the files in `tasks.engines.agents`."""


def is_agent(provider: object) -> bool:
    """Whether a value of a campaign's file, of any kind, names a provider of agents."""
    return isinstance(provider, str) and provider in AGENTS


PROVIDERS: dict[str, str] = {
    **dict.fromkeys(sorted(AGENTS), "winnow.tasks.engines.agents.kit.engine:start"),
    "function": "winnow.tasks.engines.external.scoring_function:start",
    "litellm": "winnow.tasks.engines.litellm.engine:start",
    "openai": "winnow.tasks.engines.openai.engine:start",
    "transformers": "winnow.tasks.engines.transformers.engine:start",
    "vllm": "winnow.tasks.engines.vllm.engine:start",
}
"""Provider of a model reference -> "module:function" of an `EngineFactory`."""

BUILT_IN_EMBEDDERS = ("transformers", "vllm", "precomputed")
"""Types of the built-in embedders."""

RECORDED = "recorded"
"""Provider that reads outputs from the data instead of generating them."""

FUNCTION = "function"
"""Provider of candidates stored by `winnow.select`. A campaign's file cannot name it, because its function
belongs to a running program."""

REMOTE: frozenset[str] = frozenset({"litellm", "openai"})
"""Providers that send requests to servers or APIs of models."""

ELSEWHERE = REMOTE | AGENTS
"""Providers that use no device of this machine, so that their models run at the same time as all others."""

OWN_TOKENS = frozenset({"transformers", "vllm"})
"""Providers whose prompts Winnow tokenizes itself."""

WIDTH_ARGS = ("tensor_parallel_size", "pipeline_parallel_size")
"""Arguments of vLLM whose product is the number of devices of an engine."""

NO_SEED = "(no seed)"
"""End of an engine's identity if it sends its server no seed."""
