"""The first words with a server: which software it is, and what it serves."""

from dataclasses import dataclass
from functools import partial

from winnow.tasks.engines.openai.answers import ServedModel, Version, read, read_listing
from winnow.tasks.engines.openai.errors import NotThere, RequestRefused
from winnow.tasks.engines.openai.server_calls import ServerCalls
from winnow.tasks.engines.protocol import ModelRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server told of itself."""

    listed: tuple[str, ...] = ()
    """Ids of the models that it lists; a server may know more, or list none."""
    vllm: str | None = None
    """Version of vLLM, where it is vLLM and shows more than OpenAI's own API."""
    max_model_len: int | None = None
    """Context window of the model in tokens, where known."""


async def greet(calls: ServerCalls, model: ModelRef, root: str) -> ServerInfo:
    """Ask a server what it is. Not all of them answer this: nothing depends on it but what vLLM alone can do.

    Args:
        calls: The server.
        model: What will be asked of it.
        root: Its URL without the version of the API.

    Raises:
        EngineError: If it cannot be reached, or refuses the key.
    """
    try:
        listed = await calls.get("/models", read_listing)
    except (NotThere, RequestRefused):
        listed = []
    ours = next((each for each in listed if each.id == model.model), ServedModel(id=model.model))
    return ServerInfo(
        listed=tuple(each.id for each in listed),
        vllm=await _vllm_version(calls, root) if ours.owned_by == "vllm" else None,
        max_model_len=ours.max_model_len,
    )


async def _vllm_version(calls: ServerCalls, root: str) -> str | None:
    try:
        found: Version = await calls.get(f"{root}/version", partial(read, Version))
    except (NotThere, RequestRefused):
        return None  # behind a gateway that passes on nothing but OpenAI's API
    return found.version
