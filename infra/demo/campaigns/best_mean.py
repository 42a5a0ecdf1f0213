"""The text of the demo's campaign file, and what its campaigns have in common."""

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
"""Longer than any answer of a perfect model, and a bound on the time a confused one takes."""
MODEL_ARGS = f"{{max_model_len: {CONTEXT}, dtype: float32, enforce_eager: true}}"
BUDGET_SHARE = 0.45
"""The budget as a share of all comparisons of the grid."""

_TEXT = Template("""\
# Which of these small models, asked how, answers best? `winnow run` this file, or resume it by its name.
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

# How an example is put to a model: jinja2 over the fields of a line of the dataset. "direct" asks for the
# answer at once; the others ask for scratch work, then ">", then the answer.
prompts:
$prompts

# How the answer is sampled: always the likeliest character, or by chance.
generate_configs:
$generate_configs

# $examples examples of $tasks tasks. No model saw one of them in training: it knows the words to unscramble,
# but from other scrambles.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# An answer is right if what follows its last ">" is one of the targets.
judge: {type: exact, extract: '(?:^|>)([^>]*)$$'}

# Which candidate to try next, and on which example: Champion races all of them, then completes the row of the
# best one and tests the others against its mean.
selector: {name: champion}
batch_size: 64

# Stop when one candidate stands out as the best (wrongly with probability delta at most), or after this
# many comparisons: $share % of the $grid that trying everything would take.
stopping: {budget: $budget, delta: 0.05}

# How it is run, which changes no result: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def campaign_text(folder: Path, data: Path, recipes: Sequence[Recipe]) -> str:
    """The campaign over the checkpoints of `recipes` in `folder` and the examples in `data`, as YAML."""
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
    """The parts that all campaigns of the demo share, as YAML: storage, models, prompts, configs and data."""
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
