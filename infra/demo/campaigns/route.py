"""The text of the demo's file for a campaign that routes, and the stream of prompts it answers."""

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
# Which of these models is to answer which prompt? `winnow run` this file, or resume it by its name.
name: demo-routes

# route gives each prompt to one candidate, and learns from its score whom to give prompts like it.
objective: route

# The same seed and the same outcomes lead to the same decisions.
seed: 7

# The same database as that of the other demos: their answers are used again where they fit.
storage: $storage

# Candidates are models x prompts x generate_configs. "numbers" was trained on sums and counting, "letters" on
# letters and words, "sprout" on little of either. A model added here later joins when the campaign continues.
models:
$models

prompts:
  - {name: $style, template: $template}

generate_configs:
  - {name: greedy, temperature: 0.0, max_tokens: $max_tokens}

# The examples of the other demos, in the order in which they come.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# Prompts that are alike are routed alike: a sentence-embedding model says which are. Its vectors are kept in
# the database.
embedder: {type: transformers, text: "{{ task }}: {{ input }}"}

# For reports alone: of which kind a prompt is.
prompt_type: task

# An answer is right if what follows its last ">" is one of the targets.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

# PAK-UCB: for each candidate a kernel regression of its scores on the vectors of the prompts it was given.
selector: {name: pak-ucb, params: {kernel: rbf}}
batch_size: 20

# Answer so many prompts. Later ones: winnow route demo-routes --prompt 17+25 --field task=sum --target 42
stopping: {budget: $budget}

# How it is run, which changes no result: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def route_text(folder: Path, stream: Path, recipes: Sequence[Recipe]) -> str:
    """The campaign over the checkpoints of `recipes` in `folder` and the prompts in `stream`, as YAML."""
    return _TEXT.substitute(
        common_sections(folder, stream, recipes),
        style=STYLE,
        template=json.dumps(TEMPLATES[STYLE]),
        max_tokens=MAX_TOKENS,
        budget=len(evaluation_examples()),
        loaded=len(recipes),
    )


def stream_lines() -> str:
    """The examples of all demos in a mixed order, one a line."""
    examples = list(evaluation_examples())
    random.Random(ORDER_SEED).shuffle(examples)
    return "".join(json.dumps(asdict(example)) + "\n" for example in examples)
