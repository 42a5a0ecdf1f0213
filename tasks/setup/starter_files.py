"""Starter files for campaigns: 15 lines that run once models are named, and more in comments."""

from winnow.storage.json_types import JsonObject
from winnow.storage.objectives import OBJECTIVES
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
}
"""An example model of each provider, with notes."""

MORE = """
# More that a file may have; take the # out of what you need. All keys: docs/spec.md, or winnow schema.
# stopping: {delta: 0.05, epsilon: 0.02, budget: 1000}   # within 0.02 of the best is good enough; end at 1000
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


def starter_text(provider: str, data: str | None, path: str) -> str:
    """The text of a file that compares two models of a provider on the user's data.

    Args:
        provider: A key of `MODELS`.
        data: The data file, whose columns and judge are guessed; None for a placeholder.
        path: Where the text will be written.

    Raises:
        SpecError: If the data cannot be read, or have no column for the input or the target.
    """
    columns, targets = Columns(input="input", target="target", id=None), [["answer"]]
    if data is not None:
        rows = first_rows(data)
        columns = columns_of(rows, data, None, None)
        targets = targets_in(rows, columns.target)
    model, note = MODELS[provider]
    bare = f"{{{{ {columns.input} }}}}"
    told = prompt_for(columns.input, targets)
    told = f"Answer with the answer alone.\n\n{bare}" if told == bare else told
    values = {
        "name": "my-campaign" if data is None else short_name(data).partition(".")[0],
        "objective": OBJECTIVES[0],
        "models": [{"name": name, **model} for name in ("first", "second")],
        "prompts": [{"name": "bare", "template": bare}, {"name": "told", "template": told}],
        "dataset": {"path": data or "data.jsonl", "fields": columns.fields()},
        "judge": {"type": judge_for(targets)[0]},
        "selector": {"name": "champion"},
        "stopping": {"delta": DELTA, "epsilon": AUTO},
    }
    comment = [
        f"Check it: winnow validate {path}; see some outputs: winnow try {path}; run it: winnow run {path}"
    ]
    return campaign_text(values, [*comment, f"models: {note}."]) + MORE
