"""The demo's best-mean campaign, as the text of its file, and the parts that all its campaigns share."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from winnow.infra.demo.data import EXAMPLES_PER_TASK
from winnow.infra.demo.problems import TASKS
from winnow.infra.demo.prompts import TEMPLATES
from winnow.infra.demo.recipes import CONTEXT, Recipe

TEMPERATURES = {"greedy": 0.0, "warm": 0.8}
MAX_TOKENS = 20
"""Maximum tokens of an answer: more than a perfect model needs, and a limit for poor models."""
MODEL_ARGS = f"{{max_model_len: {CONTEXT}, dtype: float32, enforce_eager: true}}"
BUDGET_SHARE = 0.45
"""The budget as a share of all pairs of a candidate and an example."""

_TEXT = Template("""\
# Which of these small models and prompts answers best? Run this file with `winnow run`, or resume the
# campaign by its name.
name: demo

# best-mean looks for the candidate with the highest mean score over the examples.
objective: best-mean

# The same seed and the same outcomes lead to the same decisions.
seed: 7

# Every prompt, answer and decision goes into this database; a PostgreSQL URL works as well.
storage: $storage

# Candidates are models x prompts x generate_configs. Each model is a checkpoint that vLLM loads;
# model_args go to vLLM as they are.
models:
$models

# Prompts are jinja2 templates over the fields of an example. "direct" asks for the answer at once; the others
# ask for scratch work, then ">", then the answer.
prompts:
$prompts

# Sampling: always the most likely character, or at random.
generate_configs:
$generate_configs

# $examples examples of $tasks tasks. No example was used in training; the words to unscramble were, but in
# other scrambles.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# An answer is right if what follows its last ">" is one of the targets.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

# The selector chooses the next candidates and examples: Champion compares all candidates on the same
# examples, then evaluates the best one on all examples, and tests the others against its mean.
selector: {name: champion}
batch_size: 64

# Stop when one candidate is shown to be the best (error probability at most delta), or after this many
# comparisons: $share % of all $grid.
stopping: {budget: $budget, delta: 0.05}

# Settings of the run, which do not change results: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def campaign_text(folder: Path, data: Path, recipes: Sequence[Recipe]) -> str:
    """YAML of the campaign with the checkpoints of `recipes` in `folder` and the examples in `data`."""
    examples = EXAMPLES_PER_TASK * len(TASKS)
    grid = len(recipes) * len(TEMPLATES) * len(TEMPERATURES) * examples
    return _TEXT.substitute(
        common_sections(folder, data, recipes),
        examples=examples,
        tasks=len(TASKS),
        share=round(100 * BUDGET_SHARE),
        grid=grid,
        budget=round(BUDGET_SHARE * grid),
        loaded=len(recipes),
    )


def common_sections(folder: Path, data: Path, recipes: Sequence[Recipe]) -> dict[str, str]:
    """Parts of the demo's files as YAML, by name: storage, models, prompts, generate_configs and data."""
    models = [
        f"  - name: {recipe.name}\n"
        f"    provider: vllm\n"
        f"    model: {json.dumps(str(folder / recipe.name))}\n"
        f"    model_args: {MODEL_ARGS}"
        for recipe in recipes
    ]
    prompts = [f"  - {{name: {name}, template: {json.dumps(text)}}}" for name, text in TEMPLATES.items()]
    configs = [
        f"  - {{name: {name}, temperature: {temperature}, max_tokens: {MAX_TOKENS}}}"
        for name, temperature in TEMPERATURES.items()
    ]
    return {
        "storage": json.dumps(f"sqlite:///{folder / 'winnow.db'}"),
        "models": "\n".join(models),
        "prompts": "\n".join(prompts),
        "generate_configs": "\n".join(configs),
        "data": json.dumps(str(data)),
    }
