"""Names of providers, and of what tells of them, for readers that import no engine."""

FUNCTION = "function"
"""The provider of what `winnow.select` stores: no file names it, as its function is a program's own."""

REMOTE: frozenset[str] = frozenset({"litellm", "openai"})
"""Providers whose models run elsewhere: they take no memory here, and are asked beside all others."""

OWN_TOKENS = frozenset({"transformers", "vllm"})
"""Providers whose prompts Winnow turns into tokens itself."""

WIDTH_ARGS = ("tensor_parallel_size", "pipeline_parallel_size")
"""Arguments of vLLM whose product is the number of devices of an engine."""

NO_SEED = "(no seed)"
"""The end of the identity of an engine whose server is sent no seed."""
