"""Prompts that are chats, and solved examples before them: what is checked, and what is sent."""

import gzip
import json
import re
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest
from spec_files import load_spec
from tiny_models import save_tiny_llama

from winnow.storage.records.record_types import NewCandidate
from winnow.tasks.candidates.candidates import StoredCandidate
from winnow.tasks.candidates.few_shot import draw_few_shot
from winnow.tasks.candidates.prompt_template import PromptTemplate
from winnow.tasks.data.datasets import Dataset, Example
from winnow.tasks.data.sandboxed_templates import compile_template
from winnow.tasks.engines import chat
from winnow.tasks.engines.chat import Message, as_stored, why_refused, words_of
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.setup.check import check_campaign
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.sections.prompts import PromptSpec

LOOP = "{% for i in range(99999) %}"
FIELDS = {"input": "1+1", "history": [{"role": "user", "content": "hi"}]}
SYSTEM = {"role": "system", "content": "Be brief about {{ input }}."}
USER = {"role": "user", "content": "{{ input }}="}
PREFILL = {"role": "assistant", "content": "It is"}
GUARDED = compile_template("No harm. {{ prompt }}", ["prompt"])


def prompt(guardrail=None, fields=FIELDS, **keys):
    template = PromptTemplate.compile(PromptSpec.model_validate({"name": "p", **keys}), FIELDS, "prompts[0]")
    return template.render(fields, "e1", guardrail)


def test_a_template_alone_is_a_text():
    assert prompt(template="{{ input }}=") == "1+1="
    assert prompt(GUARDED, template="{{ input }}=") == "No harm. 1+1="


def test_a_system_message_stands_before_the_template():
    expected = (Message("system", "Be brief about 1+1."), Message("user", "1+1="))
    assert prompt(system="Be brief about {{ input }}.", template="{{ input }}=") == expected


def test_messages_are_rendered_one_by_one_and_a_guardrail_is_put_around_the_users_last():
    found = prompt(GUARDED, messages=[SYSTEM, USER, {**PREFILL, "content": "{{ input }}?"}, USER, PREFILL])
    assert found == (
        Message("system", "Be brief about 1+1."),
        Message("user", "1+1="),
        Message("assistant", "1+1?"),
        Message("user", "No harm. 1+1="),
        Message("assistant", "It is"),
    )


def test_an_example_brings_its_own_turns_along():
    history = [{"role": "user", "content": "{{ x }}"}, {"role": "assistant", "content": "yes"}]
    found = prompt(messages=[SYSTEM, {"turns": "history"}, USER], fields={**FIELDS, "history": history})
    assert found[1:] == (Message("user", "{{ x }}"), Message("assistant", "yes"), Message("user", "1+1="))


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("hi", "example 'e1': the field 'history' is not a list of messages; each needs a role"),
        ([{"role": "tool", "content": "x"}], "is not a list of messages; each needs a role"),
        ([{"role": "user", "content": 1}], "is not a list of messages; each needs a role"),
        ([], "example 'e1': no message has the role user; add one"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            "prompts[0].messages[0].turns: example 'e1': its turns end with the assistant",
        ),
    ],
)
def test_turns_that_are_no_chat_are_refused(history, said):
    with pytest.raises(TemplateError) as caught:
        prompt(messages=[{"turns": "history"}], fields={**FIELDS, "history": history})
    assert said in str(caught.value)


def test_a_chat_is_kept_as_json_with_a_message_a_line_and_a_text_as_it_is():
    messages = (Message("system", 'Sei "kurz".'), Message("user", "é\n1+1="))
    stored = as_stored(messages)
    assert stored == (
        '[{"role": "system", "content": "Sei \\"kurz\\"."},\n {"role": "user", "content": "é\\n1+1="}]'
    )
    assert [tuple(each.values()) for each in json.loads(stored)] == list(messages)
    assert words_of(messages) == 'Sei "kurz".\né\n1+1='
    assert as_stored("1+1=") == words_of("1+1=") == "1+1="


PLAIN = '  - {name: plain, template: "{{ input }}="}\n'


def in_place_of_plain(prompts):
    return PLAIN, f"  - {prompts}\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{name: p}", "prompts[0]: give exactly one of template (a text) and messages (a chat)"),
        (
            '{name: p, template: "x", messages: [{role: user, content: "x"}]}',
            "prompts[0]: give exactly one of template (a text) and messages (a chat)",
        ),
        (
            '{name: p, system: "s", messages: [{role: user, content: "x"}]}',
            "prompts[0]: system is only for template; move it to the first of messages",
        ),
        (
            '{name: p, messages: [{role: user, content: "x"}, {role: system, content: "x"}]}',
            "prompts[0]: a system message can only be the first of messages; move it there",
        ),
        (
            '{name: p, messages: [{role: system, content: "x"}]}',
            "messages have no message of role user",
        ),
        ("{name: p, messages: [{role: user}]}", "messages[0]: a message needs role and content, or turns"),
        (
            "{name: p, messages: [{turns: h, role: user}]}",
            "messages[0]: turns already contain roles and contents",
        ),
        (
            '{name: p, messages: [{role: bot, content: "x"}]}',
            "messages[0].role: must be 'system', 'user'",
        ),
        (
            "{name: p, messages: [{turns: id}], few_shot: {n: 1}}",
            "few_shot has no question: the last user message comes from the example",
        ),
        (
            "{name: p, template: x, few_shot: {n: 0}}",
            "few_shot.n: must be at least 1",
        ),
        (
            "{name: p, template: x, few_shot: {n: 1, from: {fields: {input: q}}}}",
            "few_shot.from: give exactly one of path (files) and hub (a dataset of a hub)",
        ),
        (
            "{name: p, template: x, few_shot: {n: 1, from: {path: t.jsonl, split: train}}}",
            "few_shot.from: split is only for hub; remove split",
        ),
        (
            "{name: p, template: x, few_shot: {n: 1, from: {path: t.jsonl, spilt: train}}}",
            "few_shot.from.spilt: unknown key; did you mean 'split'?",
        ),
        (
            "{name: p, template: x, few_shot: {n: 1, form: t.jsonl}}",
            "few_shot.form: unknown key; did you mean 'from'?",
        ),
        (
            "{name: p, template: x, few_shot: {n: 1, from: 3}}",
            "few_shot.from: must be a file, a list of files, or the keys of a dataset",
        ),
    ],
)
def test_a_prompt_that_cannot_be_meant_is_refused_with_its_line(campaign_file, written, said):
    with pytest.raises(SpecError) as caught:
        load_spec(campaign_file(*in_place_of_plain(written)))
    assert str(caught.value).startswith("campaign.yaml:10: prompts[0]")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{hub: owner/sums, split: train}", "the dataset owner/sums is not in the hub's cache"),
        (
            "{path: train.jsonl, filter: levl > 3}",
            "train.jsonl, line 1: the template failed: 'levl' is undef",
        ),
        ("{path: train.jsonl, filter: level > 3}", "train.jsonl has no rows for which level > 3 is true"),
        ("trian.jsonl", "there is no file trian.jsonl"),
    ],
)
def test_solved_examples_that_are_not_there_are_told_at_the_prompt(campaign_file, folder, source, said):
    (folder / "train.jsonl").write_text('{"id": "a", "input": "x", "target": "y", "level": 1}\n')
    path = campaign_file(
        *in_place_of_plain(f"{{name: p, template: '{{{{ input }}}}', few_shot: {{n: 1, from: {source}}}}}")
    )
    with pytest.raises(SpecError) as caught:
        check_campaign_file(path)
    assert str(caught.value).startswith(f"campaign.yaml:10: prompts[0].few_shot.from: {said}")


@pytest.fixture
def check(campaign_file, folder):
    """Check the campaign with another first prompt and other keys of its first model."""

    def checked(written, *, chat="", template=None):
        for name in ("small", "smaller"):
            save_tiny_llama(folder / "checkpoints" / name, seed=1, chat_template=template)
        path = campaign_file(*in_place_of_plain(written))
        text = (folder / path).read_text()
        (folder / path).write_text(text.replace("provider: transformers", f"provider: transformers{chat}", 1))
        return check_campaign(load_spec(path))

    return checked


def refusal(check, *arguments, **keys):
    with pytest.raises(SpecError) as caught:
        check(*arguments, **keys)
    return str(caught.value)


TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
)
CHAT = ", chat: true"


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ('{name: p, system: s, template: "{{ input }}"}', "system"),
        ('{name: p, messages: [{role: user, content: "{{ input }}"}]}', "messages"),
        (
            '{name: p, template: "{{ input }}", few_shot: {n: 1, fewshot_as_multiturn: true}}',
            "few_shot.fewshot_as_multiturn",
        ),
    ],
)
def test_a_chat_for_a_model_that_does_not_chat_is_refused(check, written, key):
    assert refusal(check, written) == (
        f"prompts[0].{key}: needs a chat model, but 'small' is not a chat model; set chat: true for it, or "
        "exclude {model: small, prompt: p}"
    )


def test_a_checkpoint_without_a_chat_template_cannot_chat(check):
    assert refusal(check, '{name: p, template: "{{ input }}"}', chat=CHAT) == (
        "models[0].chat: the checkpoint in checkpoints/small has no chat template; set chat: false, name a "
        "chat_template, or choose a checkpoint trained to chat"
    )


@pytest.fixture
def check_small(campaign_file, folder):
    """Check a prompt that a model which chats is given, and one which does not is not."""

    def checked(written, *, model="", template=TEMPLATE):
        save_tiny_llama(folder / "checkpoints" / "small", seed=1, chat_template=template)
        path = campaign_file(*in_place_of_plain(written), add="exclude: [{model: smaller, prompt: p}]\n")
        text = (folder / path).read_text()
        more = f"provider: transformers, chat: true{model}"
        (folder / path).write_text(text.replace("provider: transformers", more, 1))
        return check_campaign(load_spec(path))

    return checked


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (f"{LOOP}{LOOP}{LOOP}{{% endfor %}}{{% endfor %}}{{% endfor %}}", "more than 1,000,000 steps"),
        (f"{LOOP}{{{{ range(99999) | list | length }}}}{{% endfor %}}", "more than 0.5 s"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    ],
)
def test_a_chat_template_that_never_ends_is_refused(tmp_path, monkeypatch, template, said):
    monkeypatch.setattr(chat, "MOST_SECONDS", 0.5 if " s" in said[-2:] else 1e9)
    before = sys.gettrace()
    assert said in (why_refused(template, tmp_path, (Message("user", "x"),), {}) or "")
    assert sys.gettrace() is before


def test_a_chat_template_without_system_messages_refuses_one_before_anything_runs(check_small):
    assert refusal(check_small, '{name: p, system: s, template: "{{ input }}"}') == (
        "prompts[0]: the chat template of model 'small' does not accept this prompt: TemplateError: System "
        "role not supported; change the prompt, or exclude {model: small, prompt: p}"
    )


def test_a_chat_template_that_changes_what_the_assistant_says_lets_no_model_go_on_from_it(check_small):
    written = '{name: p, messages: [{role: user, content: "x"}, {role: assistant, content: "It is"}]}'
    assert check_small(written).candidates[0].template.is_continued
    hidden = "{% for m in messages %}<{{ m.role }}>{% endfor %}{{ messages[0].content }}"
    assert "it does not keep the assistant's last message unchanged" in refusal(
        check_small, written, template=hidden
    )


def test_a_file_takes_the_place_of_the_checkpoints_chat_template(check_small, folder):
    (folder / "own.jinja").write_text("{{ messages[0].content }}{{ messages[1].content }}")
    written = '{name: p, system: s, template: "{{ input }}"}'
    checked = check_small(written, model=", chat_template: own.jinja", template=None)
    assert checked.models[0].chat_template == "{{ messages[0].content }}{{ messages[1].content }}"
    before = checked.identity()["model_fingerprints"]
    (folder / "own.jinja").write_text("{{ messages }}")
    after = check_small(written, model=", chat_template: own.jinja", template=None).identity()
    assert before["small"] != after["model_fingerprints"]["small"]
    assert before["smaller"] == after["model_fingerprints"]["smaller"]
    said = refusal(check_small, written, model=", chat_template: other.jinja", template=None)
    assert said.startswith("models[0].chat_template: the chat template other.jinja cannot be read as text")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"chat_template": "x"}, "models.0.chat_template: is only for chat models; set chat: true"),
        ({"chat_template_args": {"a": 1}}, "models.0.chat_template_args: is only for chat models"),
        (
            {"chat": True, "reasoning": {"parser": "server"}},
            "parser: server needs provider: openai or litellm and chat",
        ),
        (
            {"reasoning": {"parser": "server", "strip": False}},
            "parser: server leaves the separation to the server; remove strip and begins_inside",
        ),
    ],
)
def test_keys_of_a_model_that_mean_nothing_are_refused(campaign_file, folder, keys, said):
    path = campaign_file()
    written = json.dumps(keys)[1:-1]
    text = (folder / path).read_text()
    (folder / path).write_text(
        text.replace("provider: transformers", f"provider: transformers, {written}", 1)
    )
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert said.replace("models.0", "models[0]") in str(caught.value)


def test_what_only_chats_at_openai_is_not_asked_for_completions(campaign_file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    served = "  - {name: far, provider: openai, model: MODEL}\n"

    def check(model):
        path = campaign_file("prompts:\n", served.replace("MODEL", model) + "prompts:\n")
        return check_campaign(load_spec(path))

    assert refusal(check, "gpt-x") == (
        "models[2].chat: OpenAI's own server offers gpt-x only for chats; set chat: true"
    )
    assert check("gpt-3.5-turbo-instruct").models[2].model == "gpt-3.5-turbo-instruct"
    assert check("gpt-x, chat: true").models[2].chat


@pytest.mark.parametrize(
    ("far", "whose"),
    [
        ("provider: openai, model: gpt-x", "OpenAI's own server does not"),
        (
            "provider: litellm, model: groq/x, api_key: $OPENAI_API_KEY",
            "some APIs of litellm do not",
        ),
    ],
)
def test_what_begins_an_answer_anew_is_not_asked_to_go_on_from_what_the_assistant_says(
    campaign_file, monkeypatch, far, whose
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    models = "".join(f"  - {{name: {name}, {far}, chat: true}}\n" for name in "ab")
    written = "{name: p, messages: [{role: user, content: x}, {role: assistant, content: y}]}"
    path = Path(campaign_file(*in_place_of_plain(written)))
    before, _, rest = path.read_text().partition("models:\n")
    _, _, after = rest.partition("prompts:\n")
    path.write_text(f"{before}models:\n{models}prompts:\n{after}")
    with pytest.raises(SpecError) as caught:
        check_campaign(load_spec(path))
    said = f"prompts[0].messages: {whose} continue an assistant's message, but model 'a'"
    assert str(caught.value).startswith(said)


SHOTS = [Example(key=f"k{i}", fields={"input": f"{i}+{i}"}, targets=(str(2 * i), "x")) for i in range(9)]


@pytest.fixture
def few_shot(campaign_file, folder):
    """The prompt of a campaign whose dataset is `SHOTS`, unless told otherwise."""

    def drawn(examples=SHOTS, *, objective="best-mean", **keys):
        spec = load_spec(campaign_file())
        asked = {"name": "p", "template": "Q: {{ input }}\nA:", "few_shot": {"n": 3, **keys}}
        system = asked["few_shot"].pop("system", None)
        prompt = PromptSpec.model_validate({**asked, "system": system})
        spec = spec.model_copy(update={"prompts": [prompt], "objective": objective})
        dataset = Dataset(name="d", path="d.jsonl", examples=tuple(examples), fingerprint="0" * 64)
        shots = draw_few_shot(spec, 0, dataset, "prompts[0].few_shot")
        return PromptTemplate.compile(prompt, dataset.field_names, "prompts[0]", shots)

    return drawn


def asked_of(template, example):
    return template.render(example.fields, example.key)


def numbers(template):
    """Of the solved examples: `SHOTS[i]` asks for i+i, perhaps after a "Q: "."""
    return [int(re.search(r"\d+", shot.question).group()) for shot in template.few_shot.shots]


def in_text(*shots):
    return "".join(f"Q: {i}+{i}\nA: {2 * i}\n\n" for i in shots)


def test_solved_examples_stand_before_the_question_the_same_for_all_but_themselves(few_shot):
    template = few_shot()
    drawn = numbers(template)
    assert len(set(drawn)) == 4
    for i, example in enumerate(SHOTS):
        shown = [shot for shot in drawn if shot != i][:3]
        assert asked_of(template, example) == in_text(*shown) + f"Q: {i}+{i}\nA:"


def test_a_seed_draws_the_same_whatever_the_order_of_the_file_and_another_seed_others(few_shot):
    shots = few_shot().few_shot.shots
    assert few_shot(SHOTS[::-1]).few_shot.shots == shots
    assert len({few_shot(seed=seed).few_shot.shots for seed in range(5)}) == 5
    in_order = sorted(SHOTS, key=lambda each: sha256(f'[0,"{each.key}"]'.encode()).hexdigest())
    assert numbers(few_shot()) == [int(each.key[1:]) for each in in_order[:4]]


def test_as_turns_they_follow_the_system_message(few_shot):
    template = few_shot(n=2, fewshot_as_multiturn=True, system="Add.")
    first, second = numbers(template)[:2]
    (asked,) = {0, 1, 2} - {first, second} if {first, second} <= {0, 1, 2} else {2}
    turns = [
        each for i in (first, second) for each in (("user", f"Q: {i}+{i}\nA:"), ("assistant", str(2 * i)))
    ]
    expected = [("system", "Add."), *turns, ("user", f"Q: {asked}+{asked}\nA:")]
    assert asked_of(template, SHOTS[asked]) == tuple(Message(*each) for each in expected)


def test_their_question_answer_and_delimiters_can_be_written(few_shot):
    template = few_shot(
        n=1, question="{{ input }}", answer="is {{ target }}", target_delimiter=" => ", delimiter="\n"
    )
    (first, *_) = numbers(template)
    asked = (first + 1) % 9
    expected = f"{first}+{first} => is {2 * first}\nQ: {asked}+{asked}\nA:"
    assert asked_of(template, SHOTS[asked]) == expected


def test_another_files_examples_are_not_shown_to_questions_that_are_the_same(few_shot, folder):
    rows = [{"q": f"{i}+{i}", "a": 2 * i} for i in range(4)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    template = few_shot(**{"from": {"path": "train.jsonl", "fields": {"input": "q", "target": "a"}}})
    for i, example in enumerate(SHOTS):
        text = asked_of(template, example)
        assert text.count("Q: ") == 4
        assert text.count(f"Q: {i}+{i}\n") == 1


@pytest.mark.parametrize(
    ("source", "drawn"),
    [
        ({"hub": "sums", "name": "main", "split": "train"}, {0, 1, 2, 3}),
        (["shards/a.jsonl", "shards/b.jsonl.gz"], {0, 1, 2, 3}),
        ({"path": "shards/*", "filter": "input != '3+3'"}, {0, 1, 2, 4}),
        ({"path": "shards/*", "filter": "input != '2+2'", "limit": 4}, {0, 1, 3, 4}),
    ],
    ids=["a split of a hub's dataset", "several files", "a filter", "a filter and a limit"],
)
def test_solved_examples_come_from_what_a_dataset_may_come_from(few_shot, folder, source, drawn):
    rows = [json.dumps({"id": i, "input": f"{i}+{i}", "target": str(2 * i)}) + "\n" for i in range(6)]
    (folder / "sums").mkdir()
    (folder / "sums" / "train.jsonl").write_text("".join(rows[:4]))
    (folder / "sums" / "test.jsonl").write_text("".join(rows[4:]))
    splits = "[{split: train, path: train.jsonl}, {split: test, path: test.jsonl}]"
    card = f"---\nconfigs:\n- {{config_name: main, data_files: {splits}}}\n---\n"
    (folder / "sums" / "README.md").write_text(card)
    (folder / "shards").mkdir()
    (folder / "shards" / "a.jsonl").write_text("".join(rows[:3]))
    is_many = isinstance(source, dict)
    (folder / "shards" / "b.jsonl.gz").write_bytes(gzip.compress("".join(rows[3 : 3 + 1 + is_many]).encode()))
    assert set(numbers(few_shot(**{"from": source}))) == drawn


def test_questions_that_are_alike_are_drawn_once(few_shot):
    twins = [Example(key=f"t{i}", fields={"input": f"{i // 2}+"}, targets=("1",)) for i in range(8)]
    template = few_shot(twins)
    assert len({shot.question for shot in template.few_shot.shots}) == 4
    for example in twins:
        assert asked_of(template, example).count(example.fields["input"]) == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"n": 9},
            "prompts[0].few_shot.n: d.jsonl has 9 different questions with a target, but 10 are needed, one "
            "more than n, because no example is a few-shot example for itself; lower n, or set from "
            "to a larger file",
        ),
        (
            {"objective": "certify"},
            "prompts[0].few_shot: objective certify makes claims beyond its dataset's examples, so these "
            "cannot serve as few-shot examples; set from to a file with other examples",
        ),
        ({"from": "nothing.jsonl"}, "prompts[0].few_shot.from: there is no file nothing.jsonl"),
        (
            {"answer": "{{ solution }}"},
            "prompts[0].few_shot.answer: line 1 of the template: unknown variable",
        ),
        (
            {"question": "{{ target }}"},
            "prompts[0].few_shot.question: line 1 of the template: the target is never",
        ),
    ],
)
def test_solved_examples_that_cannot_be_had_are_refused(few_shot, keys, said):
    with pytest.raises(SpecError) as caught:
        few_shot(**keys)
    assert said in str(caught.value)


def test_examples_without_a_target_are_not_shown_solved(few_shot):
    unlabelled = [Example(key=f"u{i}", fields={"input": f"{i + 9}+{i}"}, targets=()) for i in range(50)]
    template = few_shot([*unlabelled, *SHOTS])
    assert set(numbers(template)) <= set(range(9))


WHOLE = """{name: p, messages: [{role: system, content: "s"}, {role: user, content: "{{ input }}="},
      {role: assistant, content: "So"}], few_shot: {n: 2, seed: 3, fewshot_as_multiturn: true}}"""


def test_a_stored_candidate_asks_as_the_one_that_was_stored(check_small):
    template = TEMPLATE.replace("{{ raise_exception('System role not supported') }}", "")
    checked = check_small(WHOLE, template=template, model=", reasoning: {parser: think-tags}")
    for candidate in checked.candidates:
        kept = json.loads(json.dumps(asdict(candidate.as_record())))
        stored = StoredCandidate.from_record(NewCandidate(**kept), checked.dataset.field_names)
        assert stored.model == candidate.model
        for example in checked.dataset.examples:
            asked = candidate.prompt(example.fields, example.key)
            assert stored.prompt(example.fields, example.key) == asked
    assert len(checked.candidates[0].prompt(FIELDS, "other")) == 1 + 2 * 2 + 2


def test_which_examples_are_shown_solved_is_part_of_a_campaigns_identity(check_small):
    template = TEMPLATE.replace("{{ raise_exception('System role not supported') }}", "")
    found = [
        check_small(WHOLE.replace("seed: 3", f"seed: {seed}"), template=template).identity()[
            "few_shot_examples"
        ]
        for seed in (3, 4, 3)
    ]
    assert found[0] == found[2] != found[1]
    assert list(found[0]) == ["p"]
