"""The text of the demo's file for a campaign that certifies, and what its humans see and answer."""

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
"""The model that answers in the place of a human, asked in another style than the candidates."""
STYLE, JUDGED_STYLE = "direct", "reversed"

_TEXT = Template("""\
# Which is the smallest of these models that is wrong on at most one example in four? `winnow run` this file,
# or resume it by its name.
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

# The same examples as in the other demos, without their targets: a human has to label some of them. The run
# stops and says which; `winnow label demo-certificate` asks for them one by one. Who would rather not:
#   winnow label demo-certificate $labels
# gives the labels of all examples.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# An answer is right if what follows its last ">" is one of the targets. The loss is 1 - score.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

certify:
  # The highest risk; or, against a candidate, drop: 0.1 and baseline: large/$style/greedy.
  alpha: 0.25
  # What makes a candidate dear. Candidates are tested from the dearest to the cheapest, up to the first that
  # fails.
  cost: size
  # With every labelled example go two that only the autoevaluator answers: the largest model, asked in
  # another way. However bad it is, the certificates stay right; the better it is, the fewer labels they take.
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

# R-AutoEval+ learns how far the autoevaluator is to be relied on.
selector: {name: r-autoeval-plus}
batch_size: 20

# At most so many labels; the chance that any certificate is wrong is at most delta.
stopping: {budget: 120, delta: 0.1}

# How it is run, which changes no result: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def certificate_text(folder: Path, data: Path, labels: Path, recipes: Sequence[Recipe]) -> str:
    """The campaign over the checkpoints of `recipes` in `folder`, dearest first, as YAML.

    Args:
        folder: Folder of the checkpoints.
        data: The examples without targets.
        labels: The file of the humans' answers to them.
        recipes: Those that compete; `AUTOEVALUATOR` is one of them.
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
    """The examples of all demos without their targets, one a line."""
    return "".join(json.dumps({**asdict(each), "target": None}) + "\n" for each in evaluation_examples())


def label_lines() -> str:
    """A human's answers to all examples of the demos, one a line."""
    return "".join(
        json.dumps({"id": each.id, "target": each.target}) + "\n" for each in evaluation_examples()
    )
