"""The text of the quick demo's campaign file, and its examples: those of one task."""

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
# Which of these two models, asked how, names the second letter of a word best? `winnow run` this file, or
# resume it by its name.
name: quick
objective: best-mean
seed: 7
storage: $storage

# Candidates are models x prompts x generate_configs. Transformers loads each checkpoint, here on the CPU.
models:
$models

# jinja2 over the fields of a line of the dataset. No model has ever seen the second way of asking.
prompts:
  - {name: asked, template: $asked}
  - {name: bare, template: "{{ input }}"}
generate_configs:
  - {name: greedy, temperature: 0.0, max_tokens: 4}
  - {name: warm, temperature: 0.8, max_tokens: 4}

dataset: {path: $data, fields: {id: id, input: input, target: target}}
judge: {type: exact}

# Champion races all candidates on the same examples, then completes the row of the best one and tests the
# others against its mean. It stops when one stands out, wrongly with probability delta at most.
selector: {name: champion}
batch_size: 64
stopping: {budget: $budget, delta: 0.05}
execution: {max_loaded: $loaded}
""")


def quick_text(folder: Path, data: Path, recipes: Sequence[Recipe]) -> str:
    """The campaign over the checkpoints of `recipes` in `folder` and the examples in `data`, as YAML."""
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
    """The examples of the one task, one a line."""
    return "".join(json.dumps(asdict(example)) + "\n" for example in _examples())


def _examples() -> list[Example]:
    return [example for example in evaluation_examples() if example.task == QUICK_TASK]
