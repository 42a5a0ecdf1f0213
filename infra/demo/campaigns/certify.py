"""The demo's certify campaign, as the text of its file, with its unlabelled examples and their labels."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template

from winnow.infra.demo.campaigns.best_mean import MAX_TOKENS, MODEL_ARGS, common_sections
from winnow.infra.demo.data import evaluation_examples
from winnow.infra.demo.prompts import TEMPLATES
from winnow.infra.demo.recipes import Recipe

AUTOEVALUATOR = "large"
"""Name of the model that is the autoevaluator, with another prompt than the candidates."""
STYLE, JUDGED_STYLE = "direct", "reversed"

_TEXT = Template("""\
# Which is the smallest of these models that is wrong on at most one example in four? Run this file with
# `winnow run`, or resume the campaign by its name.
name: demo-certificate

# certify looks for the cheapest candidate whose risk, its mean loss, is certified to be low enough.
objective: certify

# The same seed, labels and outcomes lead to the same decisions.
seed: 7

# The same database as that of the other demos.
storage: $storage

# Candidates are models x prompts. Each model is a checkpoint that vLLM loads; model_args go to vLLM.
models:
$models

prompts:
  - {name: $style, template: $template}

generate_configs:
  - {name: greedy, temperature: 0.0, max_tokens: $max_tokens}

# The same examples as in the other demos, without targets: a human has to label some of them. The run stops
# and lists them; `winnow label demo-certificate` asks for them one by one. To use ready labels instead:
#   winnow label demo-certificate $labels
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# An answer is right if what follows its last ">" is one of the targets. The loss is 1 - score.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

certify:
  # Highest allowed risk. To compare with a candidate instead: drop: 0.1 and baseline: large/$style/greedy.
  alpha: 0.25
  # Cost of a candidate. Candidates are tested from the most expensive to the cheapest, up to the first that
  # fails.
  cost: size
  # For every labelled example there are two that only the autoevaluator answers: the largest model, with
  # another prompt. Certificates are valid however bad it is; the better it is, the fewer labels they need.
  unlabelled_per_label: 2
  autoevaluator:
    model:
      name: $autoevaluator
      provider: vllm
      model: $autoevaluator_model
      model_args: $model_args
      generate_config: {max_tokens: $max_tokens}
    prompt: $autoevaluator_prompt
    extract: '(?:^|>)([^>]*)$$'

# R-AutoEval+ learns how much to rely on the autoevaluator.
selector: {name: r-autoeval-plus}
batch_size: 20

# Maximum number of labels; the probability that any certificate is wrong is at most delta.
stopping: {budget: 120, delta: 0.1}

# Settings of the run, which do not change results: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def certificate_text(folder: Path, data: Path, labels: Path, recipes: Sequence[Recipe]) -> str:
    """YAML of the campaign with the checkpoints of `recipes`, in their order.

    Args:
        folder: Folder of the checkpoints.
        data: File of the examples without targets.
        labels: File of the examples' labels.
        recipes: Recipes of the candidates; one of them is `AUTOEVALUATOR`.
    """
    return _TEXT.substitute(
        common_sections(folder, data, recipes),
        labels=labels,
        style=STYLE,
        template=json.dumps(TEMPLATES[STYLE]),
        max_tokens=MAX_TOKENS,
        autoevaluator=AUTOEVALUATOR,
        autoevaluator_model=json.dumps(str(folder / AUTOEVALUATOR)),
        autoevaluator_prompt=json.dumps(TEMPLATES[JUDGED_STYLE]),
        model_args=MODEL_ARGS,
        loaded=len(recipes),
    )


def unlabelled_lines() -> str:
    """The examples of all demos without targets, as JSON lines."""
    return "".join(json.dumps({**asdict(each), "target": None}) + "\n" for each in evaluation_examples())


def label_lines() -> str:
    """Labels of all examples of the demos, as JSON lines."""
    return "".join(
        json.dumps({"id": each.id, "target": each.target}) + "\n" for each in evaluation_examples()
    )
