"""The demo's route campaign, as the text of its file, and its stream of prompts."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template

from winnow.infra.demo.campaigns.best_mean import MAX_TOKENS, common_sections
from winnow.infra.demo.data import evaluation_examples
from winnow.infra.demo.prompts import TEMPLATES
from winnow.infra.demo.recipes import Recipe

STYLE = "scratchpad"
ORDER_SEED = 7

_TEXT = Template("""\
# Which of these models should answer which prompt? Run this file with `winnow run`, or resume the campaign by
# its name.
name: demo-routes

# route sends each prompt to one candidate, and learns from the score where to send similar prompts.
objective: route

# The same seed and the same outcomes lead to the same decisions.
seed: 7

# The same database as in the other demos; their answers are reused if they fit.
storage: $storage

# Candidates are models x prompts x generate_configs. "numbers" was trained on sums and counting, "letters" on
# letters and words, "sprout" on little of both. A model added here later joins when the campaign continues.
models:
$models

prompts:
  - {name: $style, template: $template}

generate_configs:
  - {name: greedy, temperature: 0.0, max_tokens: $max_tokens}

# The examples of the other demos, in the order of their arrival.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# Similar prompts are routed to the same candidate; a sentence-embedding model measures the similarity. Its
# vectors are stored in the database.
embedder: {type: transformers, text: "{{ task }}: {{ input }}"}

# The field with the type of a prompt; used only in reports.
prompt_type: task

# An answer is right if what follows its last ">" is one of the targets.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

# PAK-UCB: for each candidate, a kernel regression of its scores on the vectors of its prompts.
selector: {name: pak-ucb, params: {kernel: rbf}}
batch_size: 20

# Number of prompts to answer. To answer a further one:
#   winnow route demo-routes --prompt 17+25 --field task=sum --target 42
stopping: {budget: $budget}

# Settings of the run, which do not change results: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def route_text(folder: Path, stream: Path, recipes: Sequence[Recipe]) -> str:
    """YAML of the campaign with the checkpoints of `recipes` in `folder` and the prompts in `stream`."""
    return _TEXT.substitute(
        common_sections(folder, stream, recipes),
        style=STYLE,
        template=json.dumps(TEMPLATES[STYLE]),
        max_tokens=MAX_TOKENS,
        budget=len(evaluation_examples()),
        loaded=len(recipes),
    )


def stream_lines() -> str:
    """The examples of all demos in a random, fixed order, as JSON lines."""
    examples = list(evaluation_examples())
    random.Random(ORDER_SEED).shuffle(examples)
    return "".join(json.dumps(asdict(example)) + "\n" for example in examples)
