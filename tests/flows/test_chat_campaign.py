"""A campaign of chats and solved examples on real models: killed and resumed, asked and checked."""

import json

import campaign_processes as processes
import pytest
from campaign_processes import Kill
from campaigns import winnow
from tiny_models import save_tiny_llama
from waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("plain_runs")

CHAT = (
    "{% for m in messages %}[{{ m.role[0] }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[b]{% endif %}{% if thinks %}<think>{% endif %}"
)
SPEC = """\
name: survivor
objective: best-mean
seed: 11
storage: sqlite:///FOLDER/winnow.db
models:
  - {name: one, provider: transformers, model: FOLDER/one, chat: true, model_args: &args {dtype: float32}}
  - name: two
    provider: transformers
    model: FOLDER/two
    model_args: *args
    chat: true
    chat_template: FOLDER/own.jinja
    chat_template_args: {thinks: true}
    reasoning: {parser: think-tags, begins_inside: true}
prompts:
  - {name: plain, template: "{{ input }}="}
  - {name: solved, template: "{{ input }}=", few_shot: {n: 2, seed: 3}}
  - name: turns
    system: Add.
    template: "{{ input }}="
    few_shot: {n: 2, from: FOLDER/train.jsonl, fewshot_as_multiturn: true}
  - name: opened
    messages:
      - {role: system, content: "Add."}
      - {role: user, content: "{{ input }}="}
      - {role: assistant, content: "It is"}
exclude: [{model: two, prompt: opened}]
generate_configs: [{name: warm, temperature: 0.9, max_tokens: 12}]
dataset: {path: FOLDER/data.jsonl, fields: {id: id, input: input, target: target}}
judge: {type: contains}
selector: {name: row-mean}
batch_size: 14
stopping: {budget: 28, delta: 0.05}
execution: {group_size: 4, max_loaded: 2, log_folder: FOLDER/logs}
"""


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def written(folder):
    folder.mkdir()
    save_tiny_llama(folder / "one", seed=1, chat_template=CHAT)
    save_tiny_llama(folder / "two", seed=2)
    (folder / "own.jinja").write_text(CHAT)
    rows = [{"id": f"e{i}", "input": f"{i}+{i}", "target": "aeioustrn"[i % 9]} for i in range(12)]
    write_rows(folder / "data.jsonl", rows)
    write_rows(folder / "train.jsonl", [{**row, "input": f"{row['input']}+1"} for row in rows])
    spec = folder / "campaign.yaml"
    spec.write_text(SPEC.replace("FOLDER", str(folder)))
    return spec


@pytest.fixture(scope="module")
def whole(plain_runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chats") / "whole"
    written(folder)
    ran = winnow(folder, "run", "campaign.yaml")
    assert ran.returncode in (0, 3), ran.stderr
    return folder


def rows_of(folder):
    asked = winnow(folder, "query", "survivor", "comparisons", "--json")
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


def test_a_campaign_of_chats_that_is_killed_ends_as_one_that_is_not(whole, tmp_path):
    killed = tmp_path / "killed"
    storage = processes.store(written(killed))
    process = processes.start(processes.fork_server(), killed, storage, Kill(commit=5, after=False))
    process.join(PATIENCE_S)
    assert process.exitcode == -9
    assert not processes.has_ended(killed)
    assert processes.stored_texts(killed)
    ran = winnow(killed, "resume", "survivor", "--storage", storage)
    assert ran.returncode in (0, 3), ran.stderr
    assert processes.history(killed) == processes.history(whole)


def test_what_was_sent_and_what_was_thought_can_be_read(whole):
    rows = {row["candidate"]: row for row in rows_of(whole)}
    assert len(rows) == 7
    plain, opened = rows["one/plain/warm"], rows["one/opened/warm"]
    number = plain["example"][1:]
    assert plain["prompt"] == f"{number}+{number}="
    assert plain["reasoning"] is None
    number = opened["example"][1:]
    assert opened["prompt"] == (
        '[{"role": "system", "content": "Add."},\n'
        f' {{"role": "user", "content": "{number}+{number}="}},\n'
        ' {"role": "assistant", "content": "It is"}]'
    )
    turns = json.loads(rows["two/turns/warm"]["prompt"])
    assert [each["role"] for each in turns] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert rows["one/solved/warm"]["prompt"].count("=") == 3
    for name in ("plain", "solved", "turns"):
        thinks = rows[f"two/{name}/warm"]
        assert thinks["text"] == ""
        assert thinks["reasoning"]
        assert thinks["truncated"] or thinks["finish_reason"] == "stop"


def test_every_text_is_the_answer_to_what_its_candidate_asks(whole):
    checked = winnow(whole, "db", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_an_export_tells_messages_and_reasoning_apart(whole, tmp_path):
    out = tmp_path / "out"
    assert winnow(whole, "export", "survivor", str(out), "--only", "inspect").returncode == 0
    logs = [json.loads(path.read_text()) for path in (out / "inspect").iterdir()]
    found = {log["eval"]["task_args"]["candidate"]: log["samples"][0] for log in logs}
    turns = found["two/turns/warm"]
    asked = ["system", "user", "assistant", "user", "assistant", "user"]
    assert [each["role"] for each in turns["messages"]] == [*asked, "assistant"]
    assert turns["input"] == turns["messages"][:-1]
    reasoning, text = turns["messages"][-1]["content"]
    assert (reasoning["type"], text) == ("reasoning", {"type": "text", "text": ""})
    plain = found["one/plain/warm"]
    assert plain["input"] == plain["messages"][0]["content"]
    assert len(plain["messages"]) == 2


def test_a_file_of_solved_examples_that_changed_is_noticed(whole, tmp_path):
    folder = tmp_path / "changed"
    spec = written(folder)
    processes.store(spec)
    text = (folder / "train.jsonl").read_text()
    (folder / "train.jsonl").write_text(text.replace("+1", "+2"))
    refused = winnow(folder, "run", "campaign.yaml")
    assert refused.returncode == 2
    assert "prompts[turns]: the solved examples that it shows changed" in refused.stderr
