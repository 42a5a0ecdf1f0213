"""Tasks of lm-eval: the prompts and scores that lm-eval 0.4.13 has for them, and what is refused.

What lm-eval makes of the tasks in `lm_eval_tasks` is kept in `expected.json`, which `record.py` wrote there.
"""

import json
import shutil
from functools import cache
from pathlib import Path

import datasets
import pytest
import yaml

from tests.tasks.lm_eval_tasks import record
from winnow.tasks.candidates.likelihood_scoring import weighing_of
from winnow.tasks.candidates.prompt_template import PromptTemplate
from winnow.tasks.data.sources import read_dataset
from winnow.tasks.engines.chat import Message
from winnow.tasks.errors import JudgeError, SpecError
from winnow.tasks.harness.lm_eval import reading, seeds
from winnow.tasks.harness.lm_eval.child import importing
from winnow.tasks.harness.lm_eval.definition import READ, load_definition
from winnow.tasks.harness.lm_eval.files import Function
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.setup.trust import permissions
from winnow.tasks.setup.yaml_file import SpecFile, parse_spec

HERE = Path(__file__).parent / "lm_eval_tasks"
EXPECTED = json.loads((HERE / "expected.json").read_text("utf-8"))
TASKS = sorted({key.partition("/")[0] for key in EXPECTED["prompts"]})
FOREIGN = "functions"
"""The task whose documents are made by Python functions."""
DRAWN = ("drawn", "shuffled", "shuffled_same")
"""Tasks whose functions draw at random."""


@pytest.fixture
def tasks(folder, monkeypatch):
    """The working folder, with the tasks, their data and two checkpoints."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    return folder


def parsed(task, *, chat=False, **keys):
    """The campaign of a file with a task."""
    values = {
        "name": "bench",
        "objective": "best-mean",
        "models": [{"name": "small", "provider": "transformers", "model": "checkpoints/small", "chat": chat}],
        "task": task if isinstance(task, dict) else {"lm_eval": f"tasks/{task}.yaml"},
        "selector": {"name": "champion"},
        "stopping": {"budget": 64},
        **keys,
    }
    return parse_spec(SpecFile(Path("campaign.yaml"), values, {("task",): 5}))


def shown(spec):
    """What models are shown of each example, as lm-eval lists its requests."""
    dataset = read_dataset(spec.dataset)
    template = PromptTemplate.compile(spec.prompts[0], dataset.field_names)
    weighing = None
    if spec.output_type == "multiple-choice":
        weighing = weighing_of(spec.output_type, spec.choices, spec.target_delimiter, dataset.field_names, {})
    for each in dataset.examples:
        prompt = template.render(each.fields, each.key)
        if spec.models[0].chat and spec.output_type != "perplexity":
            turns = [Message("user", prompt)] if isinstance(prompt, str) else prompt
            prompt = json.dumps([{"role": one.role, "content": one.content} for one in turns])
        if weighing is None:
            yield [prompt]
        else:
            between = spec.target_delimiter
            between = between if between is not None else "" if spec.models[0].chat else " "
            yield from ([prompt, between + choice] for choice in weighing.of(each.fields, each.key))


@pytest.mark.parametrize("kind", record.CHATS)
@pytest.mark.parametrize("shots", record.SHOTS)
@pytest.mark.parametrize("name", [name for name in TASKS if name not in (FOREIGN, *DRAWN)])
def test_models_are_shown_what_lm_eval_shows_them(tasks, name, shots, kind):
    task = {"lm_eval": f"tasks/{name}.yaml", "num_fewshot": shots}
    if record.CHATS[kind] is not None and shots:
        task["fewshot_as_multiturn"] = record.CHATS[kind]
    found = list(shown(parsed(task, chat=record.CHATS[kind] is not None)))
    assert found == EXPECTED["prompts"][f"{name}/{shots}/{kind}"]


def test_solved_examples_are_drawn_by_the_seed(tasks):
    spec = parsed({"lm_eval": "tasks/plain.yaml", "num_fewshot": 3, "fewshot_seed": 1})
    assert list(shown(spec)) != EXPECTED["prompts"]["plain/3/text"]


def test_outputs_are_filtered_and_compared_as_lm_eval_does():
    cases = [(steps, options, output) for steps, options in record.PIPELINES for output in record.OUTPUTS]
    assert len(cases) == len(EXPECTED["scores"])
    wrong = [
        (steps, output, targets)
        for (steps, options, output), scores in zip(cases, EXPECTED["scores"], strict=True)
        for targets, score in zip(record.TARGETS, scores, strict=True)
        if judged(output, targets, filters=steps, **options) != score
    ]
    assert not wrong
    assert 0.05 < sum(map(sum, EXPECTED["scores"])) / (len(cases) * len(record.TARGETS)) < 0.5


@cache
def judge(params):
    return create_judge("exact_match", **json.loads(params))


def judged(output, targets, **params):
    verdict = judge(json.dumps(params)).judge(Sample(output=output, targets=targets))
    return verdict.reason if verdict.score is None else verdict.score


def test_a_pattern_that_takes_too_long_is_a_reason(monkeypatch):
    monkeypatch.setattr("winnow.tasks.judges.rules.exact_match.TIMEOUT_SECONDS", 0.05)
    slow = {"function": "regex", "regex_pattern": "(a+)+c"}
    assert judged("a" * 5000, ["a"], filters=[slow]) == "pattern_timeout"
    assert judged("a" * 5000, ["a"], regexes_to_ignore=["(a+)+c"]) == "pattern_timeout"
    assert judged("a", []) == "no_target"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"filters": [{"function": "custom"}]}, "function must be one of lowercase, remove_whitespace"),
        ({"filters": [{"regex_pattern": "a"}]}, "judge.filters[0]: function must be one of"),
        ({"filters": [{"function": "lowercase", "x": 1}]}, "lowercase has no option 'x'; remove it"),
        ({"filters": [{"function": "regex", "regex_pattern": "("}]}, "'(' is not a regular expression"),
        ({"filters": [{"function": "regex", "regex_pattern": 3}]}, "a pattern must be text, got 3"),
        ({"filters": [{"function": "regex", "group_select": "1"}]}, "group_select must be a whole number"),
        ({"filters": [{"function": "map", "mapping_dict": {"a": 1}}]}, "mapping_dict must map texts to"),
        ({"filters": [{"function": "map"}]}, "map needs a text as default_value"),
        ({"regexes_to_ignore": ["["]}, "judge.regexes_to_ignore: '[' is not a regular expression"),
    ],
)  # fmt: skip
def test_a_filter_that_is_none_is_refused_at_its_place(params, sentence):
    with pytest.raises(JudgeError) as refused:
        create_judge("exact_match", **params)
    assert sentence in str(refused.value)


def test_a_task_becomes_an_ordinary_campaign(tasks):
    changed(tasks, "plain", generation_kwargs={"until": "Q:", "max_gen_toks": 9, "do_sample": False})
    spec = parsed("plain", dataset={"filter": "doc.lvl != 1", "sample": 3})
    assert spec.prompts[0].model_dump(exclude_none=True) == {"name": "plain", "template": "{{ context }}"}
    assert spec.judge.model_dump() == {"type": "exact_match"}
    sampling = spec.models[0].generate_config
    assert (sampling.max_tokens, sampling.temperature, sampling.stop_seqs) == (9, 0.0, ["Q:"])
    examples = read_dataset(spec.dataset).examples
    assert len(examples) == 3
    assert {each.fields["doc"]["lvl"] for each in examples} <= {0, 2}
    assert examples[0].targets == (examples[0].fields["doc"]["a"],)


def test_prompts_and_a_judge_of_ones_own_take_the_place_of_the_tasks(tasks):
    changed(tasks, "plain", unsafe_code=True)
    own = {"name": "own", "template": "{{ doc.q }} ="}
    spec = parsed("plain", prompts=[own], judge={"type": "contains"})
    assert next(shown(spec)) == ["What is 6+7? ="]
    with pytest.raises(SpecError, match="runs what models write"):
        parsed("plain")


def test_what_a_model_says_of_its_sampling_goes_before_what_the_task_says(tasks):
    spec = parsed("plain")
    assert spec.models[0].generate_config.stop_seqs == ["\n\n"]
    model = {"name": "a", "model": "checkpoints/small", "generate_config": {"max_tokens": 5}}
    own = parsed("plain", models=[model]).models[0].generate_config
    assert (own.max_tokens, own.stop_seqs) == (5, ["\n\n"])


@pytest.mark.parametrize(
    ("keys", "metric", "judge"),
    [
        ({}, None, {"type": "acc", "target": "index"}),
        ({}, "acc_norm", {"type": "acc_norm", "target": "index"}),
        ({"metric_list": [{"metric": "f1", "aggregation": "f1"}, {"metric": "acc_bytes"}]}, None,
         {"type": "acc_norm", "target": "index", "per": "byte"}),
    ],
)  # fmt: skip
def test_a_metric_is_the_judge_that_gives_its_number(tasks, keys, metric, judge):
    changed(tasks, "choices", **keys)
    spec = parsed({"lm_eval": "tasks/choices.yaml", **({"metric": metric} if metric else {})})
    assert spec.judge.model_dump() == judge
    assert parsed("whole").judge.type == "word_perplexity"


def test_whether_a_text_is_greedy_is_asked_without_a_delimiter_as_lm_eval_does(tasks):
    metrics = [{"metric": "perplexity", "aggregation": "perplexity"}, {"metric": "acc"}]
    changed(tasks, "plain", output_type="loglikelihood", metric_list=metrics)
    spec = parsed("plain")
    assert (spec.output_type, spec.target_delimiter, spec.judge.type) == ("loglikelihood", "", "greedy")
    assert spec.models[0].generate_config.stop_seqs == []
    changed(tasks, "plain", output_type="loglikelihood", metric_list=metrics[:1])
    with pytest.raises(
        SpecError, match=r"is scored by perplexity .* which Winnow cannot compute for each example"
    ):
        parsed("plain")


def changed(folder, name, **keys):
    """Write other keys into a task's file; a text that begins with !function is one."""
    path = folder / "tasks" / f"{name}.yaml"
    read = {"task": name, **yaml.safe_load(path.read_text().replace("!function ", "")), **keys}
    text = yaml.safe_dump(read, sort_keys=False)
    path.write_text(text.replace("'!function utils.score'", "!function utils.score"))


FEATURES = [
    ({"repeats": "x"}, "has the repeats 'x'"),
    ({"repeats": 3, "filter_list": [{"name": "own", "filter": [{"function": "majority_vote"}]}]},
     "requests 3 answers and scores them together (repeats)"),
    ({"output_type": "loglikelihood_of_all"}, "has the output_type 'loglikelihood_of_all'"),
    ({"unsafe_code": True}, "runs what models write (unsafe_code)"),
    ({"doc_to_image": "picture"}, "shows models pictures (doc_to_image)"),
    ({"use_prompt": "x"}, "takes its prompt from promptsource (use_prompt)"),
    ({"dokument": 1}, "has the key 'dokument', which lm-eval 0.4.13 does not have"),
    ({"fewshot_config": {"sampler": "balanced"}}, "solved examples by balanced (fewshot_config.sampler)"),
    ({"fewshot_config": {"fewshot_indices": [1]}}, "has fewshot_config.fewshot_indices"),
    ({"dataset_kwargs": {"streaming": True}}, "has dataset_kwargs.streaming"),
    ({"dataset_kwargs": {"data_files": "https://x.org/a.json"}}, "reads its data from https://x.org/a.json"),
    ({"dataset_path": None}, "names no dataset_path"),
    ({"generation_kwargs": {"num_beams": 4}}, "has generation_kwargs.num_beams"),
    ({"generation_kwargs": {"do_sample": True}}, "samples without a temperature"),
    ({"metric_list": [{"metric": "bleu", "aggregation": "bleu"}]}, "is scored by bleu (aggregation: bleu)"),
    ({"metric_list": [{"metric": "!function utils.score", "aggregation": "bleu"}]},
     "is scored by the function "),
    ({"process_results": "!function utils.score", "metric_list": [{"metric": "f1"}]},
     "is scored by f1 (aggregation: f1)"),
    ({"metric_list": [{"metric": "exact_match", "k": 1}]}, "gives exact_match the option 'k'"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "sentence"), FEATURES, ids=[next(iter(keys)) for keys, _ in FEATURES])
def test_a_feature_that_winnow_lacks_is_named(tasks, keys, sentence):
    changed(tasks, "plain", **keys)
    with pytest.raises(SpecError) as refused:
        parsed("plain")
    assert str(refused.value).startswith("campaign.yaml:5: task.lm_eval: the task plain ")
    assert sentence in str(refused.value)


def test_files_of_a_dataset_of_the_hub_are_read_from_it_by_their_urls(tasks):
    url = "hf://datasets/owner/sums/data/a.jsonl"
    changed(tasks, "plain", dataset_kwargs={"data_files": {"test": url}, "verification_mode": "no_checks"})
    source = load_definition("tasks/plain.yaml", None).source
    assert (source.path, source.data_files) == ("owner/sums", {"test": ["data/a.jsonl"]})
    assert parsed("plain").dataset.lm_eval.hub == "owner/sums"
    changed(tasks, "plain", dataset_kwargs={"data_files": [url, url.replace("sums", "others")]})
    with pytest.raises(SpecError, match=f"reads its data from {url}; download it and name the local file"):
        parsed("plain")


def test_numbers_of_numpy_are_numbers_and_a_text_that_is_no_choice_is_no_position(tasks):
    changed(tasks, "choices", doc_to_target="!function utils.score")
    code = "import numpy as np\n\ndef score(doc):\n    return {}\n"
    for value, targets in (("np.int64(1)", ("1",)), ("np.str_('0')", ("-100",))):
        (tasks / "tasks" / "utils.py").write_text(code.format(value))
        examples = read_dataset(parsed("choices").dataset).examples
        assert {each.targets for each in examples} == {targets}


PLUS = {
    "task_id": "plus/1",
    "prompt": 'def plus_1(x):\n    """Return x plus 1."""\n',
    "entry_point": "plus_1",
    "test": "\n\ndef check(candidate):\n    assert candidate(0) == 1\n    assert candidate(-7) == -6\n",
}
"""An example in the shape of HumanEval."""
HUMANEVAL = """
task: plus
dataset_path: json
dataset_kwargs: {data_files: {test: plus.jsonl}}
unsafe_code: true
output_type: generate_until
test_split: test
doc_to_text: "{{prompt}}"
doc_to_target: "{{test}}\\ncheck({{entry_point}})"
metric_list: [{metric: !function utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}]
generation_kwargs: {until: ["\\nclass", "\\ndef"], max_gen_toks: 1024, do_sample: false}
repeats: 1
num_fewshot: 0
filter_list: [{name: create_test, filter: [{function: custom, filter_fn: !function utils.build}]}]
"""
"""Its task as lm-eval 0.4.13 has it, but for the data."""
IN_THE_SANDBOX = {"type": "code", "allow_code": True, "tests": "{{ target }}", "prefix": "{{ input }}"}


def test_a_task_that_runs_programs_is_scored_by_a_judge_that_says_so_in_the_sandbox(tasks):
    (tasks / "tasks" / "plus.yaml").write_text(HUMANEVAL)
    (tasks / "plus.jsonl").write_text(json.dumps(PLUS) + "\n")
    with pytest.raises(SpecError, match=r"is not permitted here; add next to task: judge: \{type: code"):
        parsed("plus")
    spec = parsed("plus", judge=IN_THE_SANDBOX)
    assert list(shown(spec)) == [[PLUS["prompt"]]]
    assert spec.models[0].generate_config.stop_seqs == ["\nclass", "\ndef"]
    (example,) = read_dataset(spec.dataset).examples
    judge = create_judge(spec.judge.type, **spec.judge.params)
    programs = (
        "    return x + 1\n",
        "    return x + 2\n",
        "    return 1 if x == 0 else x - 1 + 2\n",
        "    oops(\n",
    )
    verdicts = [
        judge.judge(Sample(output=each, targets=example.targets, fields=example.fields)) for each in programs
    ]
    assert [each.score for each in verdicts] == [1.0, 0.0, 1.0, 0.0]


ODD = [3, "x", {"x": [1]}, [{"metric": ["a"]}]]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_values_in_a_tasks_file_end_in_a_sentence_or_are_taken(tasks, odd):
    original = (tasks / "tasks" / "plain.yaml").read_text()
    keys = sorted(READ - {"task"})
    said = []
    for key in keys:
        (tasks / "tasks" / "plain.yaml").write_text(original)
        changed(tasks, "plain", **{key: odd})
        try:
            list(shown(parsed({"lm_eval": "tasks/plain.yaml"})))
        except SpecError as error:
            said.append(str(error))
    assert len(said) > len(keys) / 2
    assert not [each for each in said if "\n" in each or len(each) > 500]


@pytest.mark.parametrize(
    ("task", "keys", "sentence"),
    [
        ({"lm_eval": "tasks/none.yaml"}, {}, "task.lm_eval: there is no file or folder tasks/none.yaml"),
        ({"lm_eval": "tasks/"}, {}, "the folder tasks/ has 22 tasks; name the file of one: begun, "),
        ({"lm_eval": "plane", "include_path": "tasks"}, {}, "lm-eval is not installed here"),
        ({"lm_eval": "many", "include_path": "tasks"}, {}, "is a group of tasks; name one of them: plain"),
        ({"lm_eval": "plain", "include_path": "x"}, {}, "task.include_path: there is no folder x"),
        ({"lm_eval": "tasks/plain.yaml", "num_fewshots": 3}, {}, "task.num_fewshots: unknown key"),
        ({"num_fewshot": 3}, {}, "task: give exactly one of lm_eval and inspect"),
        ({"lm_eval": "tasks/plain.yaml", "metric": "f1"}, {}, "has no metric 'f1'; its metrics: exact_match"),
        ({"lm_eval": "tasks/plain.yaml", "filter": "x"}, {}, "has no filter 'x'; remove filter"),
        ({"lm_eval": "tasks/plain.yaml", "fewshot_as_multiturn": True}, {}, "needs a chat model"),
        ({"lm_eval": "tasks/plain.yaml"}, {"dataset": "x"}, "dataset: must be a mapping of keys to values"),
        ({"lm_eval": "tasks/plain.yaml"}, {"models": 3}, "models: must be a list"),
        ({"lm_eval": "tasks/plain.yaml"}, {"objective": "best-duel"}, "judge: is missing; add it"),
        ({"lm_eval": "tasks/plain.yaml"}, {"dataset": {"path": "x"}}, "dataset.path: is already set by"),
        ({"lm_eval": "tasks/plain.yaml"}, {"output_type": "generate"}, "output_type: is already set by"),
        ({"lm_eval": "tasks/plain.yaml", "metric": "exact_match"}, {"judge": {"type": "exact"}},
         "task.metric: is only for the task's own judge"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_key_task_is_told_at_its_place(tasks, monkeypatch, task, keys, sentence):
    monkeypatch.setattr("winnow.tasks.harness.lm_eval.files.find_spec", lambda name: None)
    (tasks / "tasks" / "many.yaml").write_text("group: many\ntask:\n  - plain\n  - begun\n")
    with pytest.raises(SpecError) as refused:
        parsed(task, **keys)
    assert sentence in str(refused.value)


def test_a_name_is_looked_for_in_a_folder_and_in_the_installed_lm_eval(tasks, monkeypatch):
    assert parsed({"lm_eval": "plain", "include_path": "tasks"}).prompts[0].name == "plain"
    place = type("Spec", (), {"submodule_search_locations": [str(tasks)]})
    monkeypatch.setattr("winnow.tasks.harness.lm_eval.files.find_spec", lambda name: place)
    assert parsed({"lm_eval": "included"}).prompts[0].name == "included"
    with pytest.raises(SpecError, match=r"lm-eval has no task 'plane'; did you mean 'plain'\?"):
        parsed({"lm_eval": "plane"})


@pytest.mark.parametrize(
    ("keys", "shots", "sentence"),
    [
        ({"test_split": "dev"}, 0, "names the split 'dev' of a dataset with train, test"),
        ({"test_split": None}, 0, "names neither a test_split nor a validation_split"),
        ({"doc_to_text": "{{ question }}"}, 0, "the template failed: 'question' is undefined"),
        ({"doc_to_text": "lvl"}, 0, "document 0: doc_to_text must give a text, got 0"),
        ({"doc_to_text": "{{ ().__class__ }}"}, 0, "attribute '__class__' of 'tuple' object is unsafe"),
        ({"doc_to_text": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"}, 0,
         "the template takes more than"),
        ({"doc_to_text": "{{ '%99d' % 1 }}"}, 0, "% needs numbers on both sides"),
        ({"doc_to_text": "{{ q "}, 0, "the template '{{ q ': unexpected end of template"),
        ({}, 9, "has 8 solved examples, but 9 are requested"),
        ({"num_fewshot": 0}, 2, "allows no solved examples (num_fewshot: 0); remove num_fewshot"),
        ({"doc_to_target": "{{ [1, 2] }}"}, 0, "the targets [1, 2] are not all text"),
    ],
)  # fmt: skip
def test_documents_that_are_not_as_the_task_says_are_one_sentence(tasks, keys, shots, sentence):
    changed(tasks, "plain", **keys)
    with pytest.raises(SpecError) as refused:
        list(shown(parsed({"lm_eval": "tasks/plain.yaml", **({"num_fewshot": shots} if shots else {})})))
    assert sentence in str(refused.value)


SPEC = """\
name: bench
objective: best-mean
models:
  - {name: small, provider: transformers, model: checkpoints/small}
  - {name: smaller, provider: transformers, model: checkpoints/smaller}
task: {lm_eval: tasks/NAME.yaml, num_fewshot: 3}
selector: {name: champion}
batch_size: 4
stopping: {budget: 8, delta: 0.05}
"""


def spec_file(folder, name, *, storage="sqlite:///results.db"):
    (folder / "bench.yaml").write_text(SPEC.replace("NAME", name) + f"storage: {storage}\n")
    return "bench.yaml"


@pytest.mark.parametrize(
    ("keys", "overrides", "place"),
    [
        ({}, ["task.num_fewshot=9"], "--set task.num_fewshot: "),
        ({"test_split": "dev"}, [], "bench.yaml:6: task: "),
        ({"dataset_kwargs": {"data_files": {"test": "missing.jsonl"}}}, [], "bench.yaml:6: task: "),
        ({}, ["dataset.filter=doc.lvl > 9"], "--set dataset.filter: "),
    ],
)
def test_a_mistake_is_named_at_a_key_that_the_file_has(tasks, keys, overrides, place):
    changed(tasks, "plain", **keys)
    with pytest.raises(SpecError) as refused:
        check_campaign_file(spec_file(tasks, "plain"), overrides)
    assert str(refused.value).startswith(place)


def test_functions_of_a_task_run_in_a_process_of_their_own_once_they_are_allowed(tasks):
    path = spec_file(tasks, FOREIGN)
    with pytest.raises(SpecError, match=r"utils\.py:process_docs, .*utils\.py:text, which needs your"):
        check_campaign_file(path)
    with pytest.raises(SpecError, match="nobody agrees"):
        check_campaign_file(path, approve=refusing)
    checked = check_campaign_file(path, approve=lambda file, spec: None)
    prompts = [[checked.candidates[0].prompt(each.fields, each.key)] for each in checked.dataset.examples]
    assert prompts == [shown[:1] for shown in EXPECTED["prompts"][f"{FOREIGN}/3/text"]]


@pytest.fixture
def seeded():
    """Rows are read in this process, whose generators and cache are as before in the end."""
    import torch  # noqa: F401 -- before its state is kept

    before = seeds.state()
    datasets.disable_caching()
    yield seeds.set_seeds
    datasets.enable_caching()
    seeds.put_back(before)


@pytest.mark.parametrize("kind", record.CHATS)
@pytest.mark.parametrize("shots", record.SHOTS)
@pytest.mark.parametrize("name", DRAWN)
def test_functions_draw_what_they_draw_for_lm_eval(tasks, seeded, monkeypatch, name, shots, kind):
    def rows(spec, *, is_allowed):
        seeded([])
        return reading.rows_with(spec, importing(spec.functions), asks_hub=is_allowed)

    monkeypatch.setattr(reading, "task_rows", rows)
    task = {"lm_eval": f"tasks/{name}.yaml", "num_fewshot": shots}
    if record.CHATS[kind] is not None and shots:
        task["fewshot_as_multiturn"] = record.CHATS[kind]
    found = list(shown(parsed(task, chat=record.CHATS[kind] is not None)))
    assert found == EXPECTED["prompts"][f"{name}/{shots}/{kind}"]


@pytest.mark.parametrize("name", ["drawn", "shuffled_same"])
def test_the_examples_of_functions_that_draw_are_the_same_in_every_process(tasks, name):
    assert list(shown(parsed({"lm_eval": f"tasks/{name}.yaml"}))) == EXPECTED["prompts"][f"{name}/0/text"]


@pytest.mark.parametrize(
    "line",
    [
        "docs = docs.map(lambda doc: {'q': f'{doc[\"q\"]} {os.urandom(8).hex()}'})",
        "docs = docs.map(lambda doc: {'q': f'{doc[\"q\"]} {hash(doc[\"q\"])}'})",
        "docs = docs.select(range(3 + int(os.environ['TMPDIR'][-1])))",
    ],
    ids=["urandom", "hash", "length"],
)
def test_functions_that_give_other_examples_each_time_are_refused(tasks, line):
    (tasks / "tasks" / "utils.py").write_text(
        f"import os\n\ndef process_docs(docs):\n    {line}\n    return docs\n\n"
        "def text(doc):\n    return doc['q']\n"
    )
    with pytest.raises(SpecError) as refused:
        check_campaign_file(spec_file(tasks, FOREIGN), approve=lambda file, spec: None)
    sentence = "return different examples in each call, first at task functions, document 0, so a campaign"
    assert sentence in str(refused.value)


def refusing(file, spec):
    asked = [each.text for each in permissions(spec, Path.cwd())][:2]
    file = str(Path("tasks/utils.py").resolve())
    assert asked == [f"run {name!r} of the Python file {file!r}" for name in ("process_docs", "text")]
    raise SpecError("nobody agrees")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "raise OSError('no\\nway')",
            "the task tasks/functions.yaml raised OSError: no way",
        ),
        ("import os; os._exit(3)", "the functions of the task tasks/functions.yaml ended their process"),
        ("import signal; signal.pause()", "the functions of the task tasks/functions.yaml took over 3 s"),
    ],
)
def test_functions_that_fail_are_one_sentence(tasks, monkeypatch, code, sentence):
    monkeypatch.setattr(reading, "SECONDS", 3.0 if "took over" in sentence else 60.0)
    (tasks / "tasks" / "utils.py").write_text(f"def process_docs(docs):\n    {code}\n\ntext = str\n")
    with pytest.raises(SpecError) as refused:
        check_campaign_file(spec_file(tasks, FOREIGN), approve=lambda file, spec: None)
    assert sentence in str(refused.value)


def test_a_function_that_the_campaign_does_not_name_is_not_run(tasks):
    named = parsed(FOREIGN).dataset.lm_eval.functions
    resolve = importing(named[:1])
    assert resolve(Function(*named[0].rsplit(":", 1))).__name__ == "process_docs"
    with pytest.raises(SpecError, match=r"text, which dataset\.lm_eval\.functions does not name"):
        resolve(Function(*named[1].rsplit(":", 1)))


def test_a_campaign_goes_on_without_the_task(tasks, database):
    path = spec_file(tasks, "plain", storage=database.url)
    stored = open_campaign(database, check_campaign_file(path))
    assert stored.spec["dataset"]["lm_eval"]["task"] == "tasks/plain.yaml"
    before = check_campaign_file(path).dataset
    shutil.rmtree(tasks / "tasks")
    _, again = reopen_campaign(database, "bench", database.url)
    assert again.dataset.examples == before.examples
    assert again.dataset.path == "task tasks/plain.yaml"
