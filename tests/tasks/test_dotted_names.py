"""Fields within objects have dotted names, wherever a campaign's file names a field; targets stay hidden."""

import json

import pytest

from winnow.tasks.candidates.prompt_template import PromptTemplate
from winnow.tasks.data.datasets import load_dataset
from winnow.tasks.data.sandboxed_templates import compile_condition, compile_template, holds, render
from winnow.tasks.data.tag_counts import values_of
from winnow.tasks.dotted_names import MISSING, column_of, unknown_field, value_of, without
from winnow.tasks.engines.chat import Message
from winnow.tasks.errors import DatasetError, SpecError, TemplateError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.spec.sections.prompts import PromptSpec

SECRET = "the secret target"
ROW = {
    "a": {"b": 1, "c.d": 2, "e": {"f": None}},
    "a.b": "the column",
    "turns": [{"say": "x"}, {"say": "y", "more": 0}],
    "plain": "text",
    "none": None,
    "empty": {},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.b", "the column"), ("a.c.d", 2), ("a.e.f", None), ("a.e", {"f": None}), ("turns.say", ["x", "y"]),
        ("turns.1.more", 0), ("turns.0", {"say": "x"}), ("none.b", None), ("empty.b", None),
        ("a.e.f.g", None), ("plain", "text"), ("plain.x", MISSING), ("turns.more", MISSING),
        ("turns.7.say", MISSING),
        ("a.x", MISSING), ("x.b", MISSING), ("", MISSING), (".", MISSING), ("a.", MISSING), (".a", MISSING),
    ],
)  # fmt: skip
def test_a_name_is_a_column_or_what_is_within_one(name, value):
    assert value_of(ROW, name) == value


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("a.b", {key: value for key, value in ROW.items() if key != "a.b"}),
        ("a.e.f", {**ROW, "a": {"b": 1, "c.d": 2, "e": {}}}),
        ("turns.say", {**ROW, "turns": [{}, {"more": 0}]}),
        ("turns.1.say", {**ROW, "turns": [{"say": "x"}, {"more": 0}]}),
        ("turns.0", {**ROW, "turns": [{"say": "y", "more": 0}]}),
        ("none.b", ROW),
        ("x.y", ROW),
    ],
)
def test_what_is_taken_out_leaves_the_rest_and_the_row_as_it_was(name, changed):
    before = json.dumps(ROW)
    assert without(ROW, name) == changed
    assert json.dumps(ROW) == before


def test_an_unknown_name_is_answered_with_what_the_object_holds():
    assert (
        unknown_field("field", "a.e.g", [ROW])
        == "unknown field 'a.e.g'; did you mean 'a.e.f'? available: a.e.f"
    )
    assert "available: a, a.b, empty" in unknown_field("field", "q.r", [ROW])
    assert column_of("a.b.c", ["a", "a.b"]) == "a.b"
    assert column_of("q.b", ["a"]) is None


@pytest.fixture
def squad(folder):
    """Examples with objects; the target is within one, and the ids and kinds are too."""

    def write(*more):
        rows = [
            {
                "meta": {"id": f"e{i}", "kind": "ab"[i % 2], "topics": ["x", "yz"[i % 2]]},
                "question": {"text": f"{i} plus", "hint": f"hint {i}"},
                "answers": {"text": [SECRET, f"{SECRET} {i}"], "start": [i]},
                "turns": [{"role": "user", "content": f"asked {i}"}],
                "options": {"text": ["yes", "no"]},
            }
            for i in range(6)
        ]
        for row in (*rows, *more):
            row["answers.note"] = "a column"
        text = "".join(json.dumps(row) + "\n" for row in (*rows, *more))
        (folder / "letters.jsonl").write_text(text)
        return "dataset.fields={id: meta.id, input: question.text, target: answers.text}"

    return write


def test_dotted_names_are_taken_everywhere(squad, campaign_file):
    fields = squad()
    template = (
        "prompts[0].template='{{ question.hint }} {{ answers.note }} {{ meta.topics | join }} {{ input }}='"
    )
    settings = [
        fields,
        template,
        "dataset.filter=meta.kind in ['a', 'b'] and answers.text | length == 2 and answers.note != ''",
        "tags=[meta.kind, meta.topics, answers.note]",
        "prompts[1]={name: shots, few_shot: {n: 2}, template: '{{ question.text }} {{ answers.note }}'}",
        "selector={name: champion}",
        "groups={by: meta.kind, objective: worst}",
    ]
    checked = check_campaign_file(campaign_file(), settings)
    assert [each.key for each in checked.dataset.examples] == [f"e{i}" for i in range(6)]
    example = checked.dataset.examples[1]
    assert example.targets == (SECRET, f"{SECRET} 1")
    prompts = {each.names.prompt: each.prompt(example.fields, example.key) for each in checked.candidates}
    assert prompts["plain"] == "hint 1 a column xz 1 plus="
    assert prompts["shots"].endswith("1 plus a column")
    assert prompts["shots"].count(SECRET) == 2  # of the solved ones
    assert values_of(example.fields, "meta.topics") == ["x", "z"]
    assert values_of(example.fields, "answers.note") == ["a column"]


def test_choices_and_turns_within_objects(squad, campaign_file):
    last = {"meta": {"id": "last"}, "question": {"text": "q"}, "answers": {"text": "yes"}}
    settings = [
        squad({**last, "options": {"text": ["yes", "no"]}, "turns": []}),
        "dataset.filter=meta.id == 'last'",
        "output_type=multiple-choice",
        "choices={field: options.text}",
        "judge={type: acc}",
        "generate_configs=[]",
        "models[0].generate_config={}",
    ]
    checked = check_campaign_file(campaign_file(), settings)
    assert checked.weighing.of(checked.dataset.examples[0].fields, "last") == ("yes", "no")
    spec = PromptSpec.model_validate({"name": "own", "messages": [{"turns": "chat.turns"}]})
    prompt = PromptTemplate.compile(spec, ["chat"])
    turns = {"chat": {"turns": [{"role": "user", "content": "asked"}]}}
    assert prompt.render(turns, "k") == (Message("user", "asked"),)
    assert prompt.variables == {"chat"}


def test_a_column_that_is_the_target_is_called_so(folder):
    rows = [{"input": "It crashes.", "label": "bug"}, {"input": "Thanks!", "label": "other"}]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = load_dataset(folder / "letters.jsonl", {"target": "label"}).field_names
    said = r"label is the target, which is never shown to a model; remove \{\{ label \}\}"
    for source in ("{{ label }}", "{{ label | upper }}", "{% if label %}x{% endif %}"):
        with pytest.raises(TemplateError, match=said):
            compile_template(source, known)
    with pytest.raises(TemplateError, match=r"never shown to a model; write \{\{ target \}\}"):
        compile_template("{{ label }}", known.with_more("target"), shows_target=True)
    with pytest.raises(TemplateError, match="unknown variable 'lable'"):
        compile_template("{{ lable }}", known)


def test_no_template_sees_a_target_that_is_named_by_dots(squad, folder):
    squad()
    fields = {"id": "meta.id", "input": "question.text", "target": "answers.text"}
    dataset = load_dataset(folder / "letters.jsonl", fields)
    whole = "".join(f"{{{{ {name} }}}}" for name in dataset.field_names if "." not in name)
    template = compile_template(whole, dataset.field_names)
    for example in dataset.examples:
        shown = render(template, example.fields, example.key)
        assert "'start'" in shown
        assert SECRET not in shown
        assert SECRET not in json.dumps(dict(example.fields))
    with pytest.raises(TemplateError, match=r"never shown to a model; remove \{\{ answers.text \}\}"):
        compile_template("{{ answers.text }}", dataset.field_names)
    answer = "{{ answers.text[0] }}"
    with pytest.raises(TemplateError, match=r"never shown to a model; write \{\{ target \}\}"):
        compile_template(answer, dataset.field_names.with_more("target"), shows_target=True)


def test_a_target_is_taken_out_before_the_input_that_holds_it_is_read(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text(
        json.dumps({"qa": {"ask": "who?", "answer": SECRET}, "say": [{"v": "hi"}, {"v": SECRET}]})
    )
    (example,) = load_dataset(path, {"input": "qa", "target": "qa.answer"}).examples
    assert example.fields["input"] == {"ask": "who?"}
    (example,) = load_dataset(path, {"input": "say.0.v", "target": "say.1.v"}).examples
    assert (example.fields["input"], example.targets) == ("hi", (SECRET,))
    assert example.fields["say"] == [{"v": "hi"}, {}]
    path.write_text(json.dumps({"names": ["Ann", "Bob"]}))
    with pytest.raises(DatasetError, match="it is the target: name another column"):
        load_dataset(path, {"input": "names.0", "target": "names"})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"target": "answers"}, 'is {"text": ["Ann"]}; name a part of it, such as answers.text'),
        ({"target": "answers.txt"}, "unknown column 'answers.txt'; did you mean 'answers.text'?"),
        ({"target": "{{ answers.text }}"}, "a field within an object is named answers.text"),
        ({"target": "answers['text']"}, "a field within an object is named answers.text"),
        ({"input": "question.x"}, "unknown column 'question.x'; did you mean 'question'? available: answers"),
        ({"id": "answers"}, "the id in column 'answers' is"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(tmp_path, fields, sentence):
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"question": "who", "answers": {"text": ["Ann"]}}))
    with pytest.raises(DatasetError) as refused:
        load_dataset(path, {"input": "question", **fields})
    assert sentence in str(refused.value)


@pytest.mark.parametrize("key", ["tags=[meta.kin]", "groups={by: meta.kin}", "choices={field: mata.kind}"])
def test_a_key_that_names_no_field_lists_those_there_are(squad, campaign_file, key):
    settings = [squad(), key, "selector={name: champion}"]
    if key.startswith("choices"):
        more = "output_type=multiple-choice", "judge={type: acc}", "generate_configs=[]"
        settings += [*more, "models[0].generate_config={}"]
    with pytest.raises(SpecError, match=r"unknown field 'm[ea]ta.*'; did you mean 'meta"):
        check_campaign_file(campaign_file(), settings)


FLAT = {
    "answers.text": "flat",
    "answers": {"text": "inner", "more": "x"},
    "n": [{"answers": {"text": "loop"}}],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ answers.text }}", "flat"),
        ("{{ answers.text.upper() }}", "FLAT"),
        ("{{ answers.more }}", "x"),
        ("{% for answers in n %}{{ answers.answers.text }}{% endfor %}", "loop"),
        ("{{ answers.text | length }} {{ answers.text is defined }}", "4 True"),
    ],
)
@pytest.mark.parametrize("known", [tuple(FLAT), None])
def test_a_column_whose_name_has_a_dot_goes_first_in_templates(template, text, known):
    assert render(compile_template(template, known), FLAT) == text


def test_a_column_whose_name_has_a_dot_needs_no_object():
    template = compile_template("{{ answers.text }}", ["answers.text"])
    assert template.variables == {"answers.text"}
    assert render(template, {"answers.text": "flat"}) == "flat"
    with pytest.raises(TemplateError, match="unknown variable 'answers'"):
        compile_template("{{ answers }} {{ answers.text }}", ["answers.text"])
    condition = compile_condition(
        "answers.text == 'flat' and not answers.text.startswith('x')", "dataset.filter"
    )
    assert holds(condition, {"answers.text": "flat"}, "row 1")
    assert not holds(condition, {"answers": {"text": "other"}}, "row 2")
