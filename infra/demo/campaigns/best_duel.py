"""The text of the demo's file for a campaign of duels."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from winnow.infra.demo.campaigns.best_mean import MODEL_ARGS, common_sections
from winnow.infra.demo.pairs import FIRST, NEITHER, SECOND
from winnow.infra.demo.prompts import JUDGE_TEMPLATE
from winnow.infra.demo.recipes import Recipe

BUDGET = 4000
"""Duels; the campaign usually ends far earlier."""

_TEXT = Template("""\
# Which of these ways to ask a small model has the answers that a judge prefers? `winnow run` this file, or
# resume it by its name.
name: demo-duels

# best-duel looks for the candidate whose answers are preferred to those of every other candidate.
objective: best-duel

# The same seed and the same outcomes lead to the same decisions.
seed: 7

# The same database as that of the other demo: its answers are used again where they fit.
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

# This judge prefers short answers. Of those without scratch work only one is kept: it could not tell them
# apart, and the campaign would spend its whole budget on a tie.
exclude:
  - {model: medium, prompt: direct}
  - {prompt: direct, generate_config: warm}

# Examples are drawn at random, and may be drawn again: who samples answers anew then.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# A model trained to say which of two answers is shorter: $first, $second, or $neither for a tie. It sees
# every pair in both orders (position_swap); if it does not prefer the same answer in both, the duel is a tie.
# "choice" has it reply with one of the three and nothing else; "probabilities" would use how sure it is.
# Its prompt has to fit in 128 characters. A judge that can read more gets one of the built-in templates,
# which fence the answers, so that none can pose as a verdict.
judge:
  type: llm
  models:
    - name: $judge
      provider: vllm
      model: $judge_model
      model_args: $model_args
  template: $template
  score_mapping: {$first: 1.0, $second: 0.0, $neither: 0.5}
  verdict_pattern: '[$first$second$neither]'
  read: choice
  position_swap: true
  order_aggregation: tie

# Which two candidates meet next: LLM-PO with a Bradley-Terry model of the prompts, models and samplings.
selector: {name: llm-po-bt}
batch_size: 64

# Stop when one candidate stands out as preferred to every other (wrongly with probability delta at most, if
# the model of its choices holds), or after this many duels.
stopping: {budget: $budget, delta: 0.05}

# How it is run, which changes no result: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def duel_text(folder: Path, data: Path, recipes: Sequence[Recipe], judge: Recipe) -> str:
    """The duels of the checkpoints of `recipes` in `folder` before that of `judge`, as YAML."""
    return _TEXT.substitute(
        common_sections(folder, data, recipes),
        judge=judge.name,
        judge_model=json.dumps(str(folder / judge.name)),
        model_args=MODEL_ARGS,
        template=json.dumps(JUDGE_TEMPLATE),
        first=FIRST,
        second=SECOND,
        neither=NEITHER,
        budget=BUDGET,
        loaded=len(recipes) + 1,
    )
