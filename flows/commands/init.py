"""init: a campaign's file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from tasks.errors import SpecError

STARTER = """\
# A campaign finds the best of its candidates: models x prompts (x generate_configs).
# `winnow validate` checks this file and `winnow run` runs it; `winnow selectors` and `winnow judges` list
# what may stand here.
name: my-campaign
objective: best-mean
seed: 7
storage: sqlite:///winnow.db

# A folder with a saved checkpoint, or an id on a model hub. model_args go to the engine as they are.
models:
  - name: small
    provider: vllm
    model: path/to/small
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}
  - name: large
    provider: vllm
    model: path/to/large
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}

# jinja2 over the fields of an example; the target is never shown.
prompts:
  - {name: direct, template: "{{ input }}"}
  - {name: careful, template: "Think step by step, then write 'Answer:' and the answer.\\n\\n{{ input }}"}

# One example a line; `fields` says which column plays which role.
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}

# What follows the last "Answer:" (or the whole output) is compared with the target.
judge: {type: normalised, extract: '(?s)(?:.*Answer:)?(.*)'}

selector: {name: ucb-e}
batch_size: 32

# Stop when one candidate stands out with error probability delta, or after this many comparisons.
stopping: {budget: 2000, delta: 0.05}

# Raise max_loaded when more models fit in memory: every reload costs time.
execution: {max_loaded: 1}
"""


def init(
    spec: Annotated[Path, typer.Argument(metavar="[SPEC]", help="The file to write.")] = Path(
        "campaign.yaml"
    ),
) -> None:
    """Write a campaign's file to start from."""
    try:
        with spec.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError:
        raise SpecError(f"{spec} is there already; name another file, or remove it first") from None
    except OSError as error:
        raise SpecError(f"{spec} cannot be written: {error.strerror}") from error
    print(f"wrote {spec}; name your models, prompts and data there, then: winnow validate {spec}")
