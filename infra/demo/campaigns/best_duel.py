"""The demo's campaign of duels, as the text of its file."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from winnow.infra.demo.campaigns.best_mean import MODEL_ARGS, common_sections
from winnow.infra.demo.pairs import FIRST, NEITHER, SECOND
from winnow.infra.demo.prompts import JUDGE_TEMPLATE
from winnow.infra.demo.recipes import Recipe

BUDGET = 4000
"""Maximum number of duels; the campaign usually ends far earlier."""

_TEXT = Template("""\
# Which model, prompt and sampling gives the answers that a judge prefers? Run this file with `winnow run`, or
# resume the campaign by its name.
name: demo-duels

# best-duel looks for the candidate whose answers are preferred to those of every other candidate.
objective: best-duel

# The same seed and the same outcomes lead to the same decisions.
seed: 7

# The same database as in the other demos; their answers are reused if they fit.
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

# This judge prefers short answers, so it could not distinguish candidates without scratch work, and the
# campaign would spend its whole budget on a tie. Only one of them is kept.
exclude:
  - {model: medium, prompt: direct}
  - {prompt: direct, generate_config: warm}

# Examples are drawn at random, and can be drawn again; candidates that sample then give a new answer.
dataset:
  path: $data
  fields: {id: id, input: input, target: target}

# A model trained to output which of two answers is shorter: $first, $second, or $neither for a tie. It judges
# every pair in both orders (position_swap); if it does not prefer the same answer in both, the duel is a tie.
# With "choice" its reply is one of the three; "probabilities" would use their probabilities.
# Its prompt has to fit in 128 characters. For a judge with a longer context, use a built-in template: it
# fences the answers, so that an answer cannot pass for a verdict.
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

# The selector chooses the next pair: LLM-PO with a Bradley-Terry model of prompts, models and sampling.
selector: {name: llm-po-bt}
batch_size: 64

# Stop when one candidate is shown to be preferred to every other (error probability at most delta, if the
# model of preferences holds), or after this many duels.
stopping: {budget: $budget, delta: 0.05}

# Settings of the run, which do not change results: all models stay loaded.
execution: {max_loaded: $loaded}
""")


def duel_text(folder: Path, data: Path, recipes: Sequence[Recipe], judge: Recipe) -> str:
    """YAML of the campaign of duels between the checkpoints of `recipes`, judged by that of `judge`.

    All checkpoints are in `folder`.
    """
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
