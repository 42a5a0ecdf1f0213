"""The quick demo's campaign, as the text of its file, and its examples, which are of one task."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template

from winnow.infra.demo.campaigns.best_mean import common_sections
from winnow.infra.demo.data import Example, evaluation_examples
from winnow.infra.demo.prompts import TEMPLATES
from winnow.infra.demo.recipes import CONTEXT, QUICK_TASK, Recipe

_TEXT = Template("""\
# Which of these two models, with which prompt, names the second letter of a word best? Run this file with
# `winnow run`, or resume the campaign by its name.
name: quick
objective: best-mean
seed: 7
storage: $storage

# Candidates are models x prompts x generate_configs. Transformers loads each checkpoint, here on the CPU.
models:
$models

# Prompts are jinja2 templates over the fields of an example. The models were not trained on the second one.
prompts:
  - {name: asked, template: $asked}
  - {name: bare, template: "{{ input }}"}
generate_configs:
  - {name: greedy, temperature: 0.0, max_tokens: 4}
  - {name: warm, temperature: 0.8, max_tokens: 4}

dataset: {path: $data, fields: {id: id, input: input, target: target}}
judge: {type: exact}

# Champion compares all candidates on the same examples, then evaluates the best one on all examples, and
# tests the others against its mean. It stops when one is shown to be the best (error probability at most
# delta).
selector: {name: champion}
batch_size: 64
stopping: {budget: $budget, delta: 0.05}
execution: {max_loaded: $loaded}
""")


def quick_text(folder: Path, data: Path, recipes: Sequence[Recipe]) -> str:
    """YAML of the campaign with the checkpoints of `recipes` in `folder` and the examples in `data`."""
    models = [
        f"  - {{name: {recipe.name}, provider: transformers, model: {json.dumps(str(folder / recipe.name))}, "
        f"model_args: {{max_model_len: {CONTEXT}}}}}"
        for recipe in recipes
    ]
    sections = common_sections(folder, data, recipes) | {"models": "\n".join(models)}
    return _TEXT.substitute(
        sections,
        asked=json.dumps(TEMPLATES["direct"]),
        budget=len(recipes) * 2 * 2 * len(_examples()),
        loaded=len(recipes),
    )


def quick_lines() -> str:
    """The examples of the task `QUICK_TASK`, as JSON lines."""
    return "".join(json.dumps(asdict(example)) + "\n" for example in _examples())


def _examples() -> list[Example]:
    return [example for example in evaluation_examples() if example.task == QUICK_TASK]
