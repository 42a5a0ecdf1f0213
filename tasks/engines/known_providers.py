"""Names of providers and related constants, for modules that import no engine."""

FUNCTION = "function"
"""Provider of candidates stored by `winnow.select`: no file can name it, since its function is a program's
own."""

REMOTE: frozenset[str] = frozenset({"litellm", "openai"})
"""Providers whose models run elsewhere: they take no memory here, and are queried alongside all others."""

OWN_TOKENS = frozenset({"transformers", "vllm"})
"""Providers whose prompts Winnow tokenizes itself."""

WIDTH_ARGS = ("tensor_parallel_size", "pipeline_parallel_size")
"""Arguments of vLLM whose product is the number of devices of an engine."""

NO_SEED = "(no seed)"
"""End of the identity of an engine that sends its server no seed."""
