"""Campaign files to start from, one for each question."""

BEST_MEAN = """\
# A campaign finds the best of its candidates: models x prompts (x generate_configs).
# `winnow validate` checks this file and `winnow run` runs it; `winnow selectors` and `winnow judges` list
# what may stand here.
name: my-campaign
objective: best-mean
seed: 7
storage: sqlite:///winnow.db

# A folder with a saved checkpoint, or an id on a model hub. model_args go to the engine as they are.
models:
  - name: small
    provider: vllm
    model: path/to/small
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}
  - name: large
    provider: vllm
    model: path/to/large
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}

# jinja2 over the fields of an example; the target is never shown.
prompts:
  - {name: direct, template: "{{ input }}"}
  - {name: careful, template: "Think step by step, then write 'Answer:' and the answer.\\n\\n{{ input }}"}

# One example a line; `fields` says which column plays which role.
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}

# What follows the last "Answer:" (or the whole output) is compared with the target.
judge: {type: normalised, extract: '(?s)(?:.*Answer:)?(.*)'}

selector: {name: ucb-e}
batch_size: 32

# Stop when one candidate stands out with error probability delta, or after this many comparisons.
stopping: {budget: 2000, delta: 0.05}

# Raise max_loaded when more models fit in memory: every reload costs time.
execution: {max_loaded: 1}
"""

BEST_DUEL = """\
# Which candidate is preferred over every other? In a duel two answer one example, and a judge prefers one.
# `winnow validate` checks this file and `winnow run` runs it; `winnow selectors` and `winnow judges` list
# what may stand here.
name: my-duels
objective: best-duel
seed: 7
storage: sqlite:///winnow.db

# A folder with a saved checkpoint, or an id on a model hub. model_args go to the engine as they are.
models:
  - name: assistant
    provider: vllm
    model: path/to/assistant
    chat: true
    model_args: {max_model_len: 4096}
    generate_config: {max_tokens: 512}

# Candidates are models x prompts x guardrails x generate_configs. A guardrail is put around the prompt.
prompts:
  - {name: plain, template: "{{ input }}"}
  - {name: steps, template: "{{ input }}\\n\\nThink step by step."}
guardrails:
  - {name: none, template: "{{ prompt }}"}
  - {name: careful, template: "Refuse what could do harm.\\n\\n{{ prompt }}"}
generate_configs:
  - {name: greedy, temperature: 0.0}
  - {name: warm, temperature: 0.8}

# One example a line; `fields` says which column plays which role.
dataset: {path: data.jsonl, fields: {id: id, input: input, target: null}}

# A model that judges both orders of every pair. With right answers at hand, rules are cheaper:
#   judge: {type: rules, scorer: {type: normalised}, both_right: shorter}
judge:
  type: llm
  template: mt-bench
  models:
    - {name: judge, provider: vllm, model: path/to/judge, chat: true, model_args: {max_model_len: 8192}}

# llm-po-bt learns what each choice is worth; llm-po takes every candidate for itself.
selector: {name: llm-po-bt}
batch_size: 64

# Stop when one candidate beats all others with error probability delta, or after this many duels. The default
# threshold is a heuristic; selector params {threshold: proven} keeps to delta for certain and takes longer.
stopping: {budget: 3000, delta: 0.05}

# Raise max_loaded so that the judge stays in memory beside the models: every reload costs time.
execution: {max_loaded: 2}
"""

STARTERS = {"best-mean": BEST_MEAN, "best-duel": BEST_DUEL}
"""By objective."""
