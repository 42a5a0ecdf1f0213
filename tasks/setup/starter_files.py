"""Starter files for campaigns: 15 lines that run once models are named.

More keys are in comments.
"""

from collections.abc import Sequence

from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES
from winnow.tasks.engines.known_providers import AGENTS
from winnow.tasks.setup.auto_epsilon import AUTO
from winnow.tasks.setup.guesses import Columns, columns_of, first_rows, judge_for, prompt_for, targets_in
from winnow.tasks.setup.written_files import campaign_text
from winnow.tasks.spec.shorthands import DELTA, short_name

MODELS: dict[str, tuple[JsonObject, str]] = {
    "openai": (
        {"provider": "openai", "model": "NAME", "model_base_url": "http://127.0.0.1:8000/v1", "chat": True},
        "NAME is the server's. For OpenAI's own server leave model_base_url out and set OPENAI_API_KEY",
    ),
    "vllm": (
        {"provider": "vllm", "model": "path/to/MODEL", "chat": True},
        "a folder or the id of a hub; chat: false for a model without a chat template",
    ),
    "transformers": (
        {"provider": "transformers", "model": "path/to/MODEL", "chat": True},
        "a folder or the id of a hub; chat: false for a model without a chat template",
    ),
    "litellm": (
        {"provider": "litellm", "model": "anthropic/NAME", "api_key": "$ANTHROPIC_API_KEY", "chat": True},
        "API/NAME as LiteLLM calls it, and the variable that holds the key",
    ),
    "command": (
        {"provider": "command", "command": ["python", "agent.py"], "params": {"k": 3}},
        "a program reads one JSON object and prints the output; see docs/how-to/agents.md",
    ),
    "http": (
        {"provider": "http", "url": "http://127.0.0.1:8000/answer", "params": {"k": 3}},
        "the endpoint gets one JSON object and answers with one; body and output change that, see "
        "docs/how-to/agents.md",
    ),
    "python": (
        {"provider": "python", "function": "agent.py:answer", "params": {"k": 3}},
        "answer(example, params) returns the output; see docs/how-to/agents.md",
    ),
}
"""An example model of each provider, with notes."""

MORE = """
# More keys; remove the # in front of those that you need. All keys: docs/spec.md, or winnow schema.
# stopping: {delta: 0.05, epsilon: 0.02, budget: 1000}   # accept one within 0.02 of the best; end at 1000
# generate_configs:                                      # crossed with models and prompts
#   - {name: greedy, temperature: 0.0, max_tokens: 64}
#   - {name: warm, temperature: 0.7, max_tokens: 64}
# judge: {type: normalised, extract: '(?s)(?:.*Answer:)?(.+)'}   # what follows the last Answer:
# judge: {type: choice, options: [red, blue]}            # the option that an output names; winnow judges
# holdout: 0.3                                           # score the winner on examples kept apart
# seed: 7
# storage: sqlite:///winnow.db
# execution: {max_loaded: 1}                             # models in memory at once
"""


def models_named(provider: str, names: Sequence[str], server: str) -> list[JsonObject]:
    """Models as entries of a campaign's file, each with a different name.

    Args:
        provider: A key of `MODELS`.
        names: Names of the models at the provider, or their folders.
        server: URL of the models' server; empty for a provider without servers, "openai" for OpenAI's own
            server.
    """
    if provider not in MODELS:
        return []
    like = dict(MODELS[provider][0])
    if server:
        like |= {"model_base_url": server}
    if server == "openai":
        del like["model_base_url"]
    found: list[JsonObject] = []
    for number, model in enumerate(names, 1):
        name, taken = short_name(model), {each["name"] for each in found}
        found.append({"name": f"{name}-{number}" if name in taken else name, **like, "model": model})
    return found


def starter_text(provider: str, data: str | None, path: str, models: Sequence[JsonObject] = ()) -> str:
    """Text of a file that compares models of a provider on the user's data.

    Args:
        provider: A key of `MODELS`.
        data: The data file, whose columns and judge are guessed; None for a placeholder.
        path: Path of the file that will contain the text.
        models: The models; if empty, two placeholders.

    Raises:
        SpecError: The data cannot be read, or have no column for the input or the target.
    """
    columns, targets = Columns(input="input", target="target", id=None), [["answer"]]
    if data is not None:
        rows = first_rows(data)
        columns = columns_of(rows, data, None, None)
        targets = targets_in(rows, columns.target)
    model, note = MODELS[provider]
    is_agent = provider in AGENTS
    bare = f"{{{{ {columns.input} }}}}"
    told = prompt_for(columns.input, targets)
    told = f"Answer with the answer alone.\n\n{bare}" if told == bare else told
    prompts = [{"name": "bare", "template": bare}, {"name": "told", "template": told}]
    values = {
        "name": "my-campaign" if data is None else short_name(data).partition(".")[0],
        "objective": OBJECTIVES[0],
        "models": [*models]
        or [_numbered(name, model, number) for number, name in enumerate(("first", "second"), 1)],
        **({} if is_agent else {"prompts": prompts}),
        "dataset": {"path": data or "data.jsonl", "fields": columns.fields()},
        "judge": {"type": judge_for(targets)[0]},
        "selector": {"name": "champion"},
        "stopping": {"delta": DELTA, "epsilon": AUTO},
    }
    comment = [
        f"Check it: winnow validate {path}; see some outputs: winnow try {path}; run it: winnow run {path}"
    ]
    notes = [] if models else [f"models: {note}."]
    return campaign_text(values, [*comment, *notes]) + MORE


def _numbered(name: str, model: JsonObject, number: int) -> JsonObject:
    """Entry of a placeholder model; for an agent, `params.k` is the number.

    The number makes the two agents of a starter file differ.
    """
    return {"name": name, **model, **({"params": {"k": number}} if "params" in model else {})}
