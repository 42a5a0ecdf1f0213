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

selector: {name: champion}
batch_size: 64

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

# llm-po takes nothing for granted of how candidates compare. llm-po-bt learns what each choice is worth, and
# is right as far as the worth of a candidate is the sum of what its choices are worth.
selector: {name: llm-po}
batch_size: 64

# Stop when one candidate is shown to beat all others, with error probability delta, or after this many duels.
# Where one candidate must beat or tie all others, selector params {assume_winner: true} need fewer duels.
stopping: {budget: 3000, delta: 0.05}

# Raise max_loaded so that the judge stays in memory beside the models: every reload costs time.
execution: {max_loaded: 2}
"""

CERTIFY = """\
# What is the cheapest candidate whose risk is low enough? Humans label a few examples; an autoevaluator, a
# model that answers in their place, makes the most of each label, and cannot make a certificate wrong.
# `winnow validate` checks this file and `winnow run` runs it; when labels are wanted, it stops: `winnow
# label` takes them, `winnow resume` goes on.
name: my-certificate
objective: certify
seed: 7
storage: sqlite:///winnow.db

# A folder with a saved checkpoint, or an id on a model hub. model_args go to the engine as they are.
models:
  - name: large
    provider: vllm
    model: path/to/large
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}
  - name: small
    provider: vllm
    model: path/to/small
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}

prompts:
  - {name: direct, template: "{{ input }}"}

# Examples whose target is null or empty have no label yet. Choose at random which have one.
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}

# The loss of an answer is 1 - score against the human label.
judge: {type: normalised}

certify:
  # The highest mean loss; or, against a candidate, drop: 0.05 and baseline: large/direct.
  alpha: 0.1
  # Or prompt-length; or price or custom with costs: {large/direct: 3, small/direct: 1}.
  cost: size
  unlabelled_per_label: 4
  autoevaluator:
    model: {name: grader, provider: vllm, model: path/to/grader, model_args: {max_model_len: 2048}}
    prompt: "{{ input }}"

# r-autoeval-plus relies on the autoevaluator as far as it deserves; r-eval does without one.
selector: {name: r-autoeval-plus}
batch_size: 16

# At most so many labels; the chance that any certificate is wrong is at most delta.
stopping: {budget: 200, delta: 0.1}

# Raise max_loaded when more models fit in memory: every reload costs time.
execution: {max_loaded: 1}
"""

ROUTE = """\
# Which candidate is to answer which prompt? Each prompt is given to one candidate, and its score tells whom
# to give prompts like it. `winnow validate` checks this file and `winnow run` runs it; `winnow route` answers
# prompts that come later, and exports what was learned.
name: my-router
objective: route
seed: 7
storage: sqlite:///winnow.db

# A folder with a saved checkpoint, or an id on a model hub. model_args go to the engine as they are. A model
# that is added later joins: what was learned of the others stays.
models:
  - name: general
    provider: vllm
    model: path/to/general
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}
  - name: coder
    provider: vllm
    model: path/to/coder
    model_args: {max_model_len: 2048}
    generate_config: {max_tokens: 64}

prompts:
  - {name: direct, template: "{{ input }}"}

# Prompts in the order in which they come, with what counts as right.
dataset: {path: data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: normalised}

# What makes a vector of a prompt: by default a small sentence-embedding model that Winnow installs; or
# {type: transformers, model: path/to/checkpoint}, {type: vllm, model: ...}, {type: precomputed, path: ...}.
embedder: {text: "{{ input }}"}

# rff-ucb costs the same in every round, however many prompts there were.
selector: {name: pak-ucb, params: {kernel: rbf}}
batch_size: 16

# Answer so many prompts.
stopping: {budget: 1000}

# Raise max_loaded when more models fit in memory: every reload costs time.
execution: {max_loaded: 2}
"""

STARTERS = {"best-mean": BEST_MEAN, "best-duel": BEST_DUEL, "certify": CERTIFY, "route": ROUTE}
"""By objective."""
