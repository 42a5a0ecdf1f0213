"""What `winnow validate` asks to look at once more: it can be run, and hardly means what it says."""

import json

import pytest
from campaigns import winnow
from stored_campaigns import store_checked

from winnow.flows.cli import campaigns
from winnow.flows.reports import output
from winnow.flows.run.validation import validate
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.unintended_settings import likely_mistakes
from winnow.tasks.setup.yaml_file import read_spec_file


@pytest.fixture
def found(campaign_file, folder):
    """The likely mistakes of a campaign whose first prompt, or another key, is set."""

    def mistakes(*settings, rows=None):
        if rows is not None:
            (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [*likely_mistakes(check_campaign_file(campaign_file(), settings))]

    return mistakes


def prompt(template):
    return f"prompts[0].template={json.dumps(template)}"


def rows_of(**columns):
    return [{"id": f"e{i}", "input": f"{i} plus", "target": "x", **columns} for i in range(3)]


SAME = "prompt 'plain' is the same for every example: "


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("Question: {input}", "it shows {input} as literal text; write {{ input }}"),
        ("Q: { input }\nA:", "it shows { input } as literal text; write {{ input }}"),
        ("Q: ${input}", "it shows ${input} as literal text; write {{ input }}"),
        ("Q: #{input}", "it shows #{input} as literal text; write {{ input }}"),
        ("Q: %(input)s", "it shows %(input)s as literal text; write {{ input }}"),
        ("Q: $input", "it shows $input as literal text; write {{ input }}"),
        ("Q: <input>", "it shows <input> as literal text; write {{ input }}"),
        ("Q: <INPUT>", "it shows <INPUT> as literal text; write {{ input }}"),
        ("Q: [input]", "it shows [input] as literal text; write {{ input }}"),
        ("Q: [[ input ]]", "it shows [[ input ]] as literal text; write {{ input }}"),
        ("Q: {{ 'input' }}", "it shows {{ 'input' }} as literal text; write {{ input }}"),
        ("Q: {question}", "it shows {question} as literal text; write {{ input }}"),
        ("Q: {Subject}", "it shows {Subject} as literal text; write {{ subject }}"),
        ("Q: {0}", "it shows {0} as literal text; write {{ input }}"),
        ("Q: {}", "it shows {} as literal text; write {{ input }}"),
        ("Q: %s", "it shows %s as literal text; write {{ input }}"),
        (
            "Answer in <b>one</b> word.",
            "it shows no field of the example; show the question, such as {{ input }}",
        ),
        ("On {{ subject }}:", "subject never changes; show another field, such as {{ input }}"),
        ("On {{ subject }}: {input}", "it shows {input} as literal text; write {{ input }}"),
        ("{% if input %}Say yes.{% endif %}", "input never changes; show another field, such as {{ input }}"),
    ],
)
def test_a_prompt_that_is_the_same_for_every_example_is_told_with_the_spelling(found, template, sentence):
    (mistake,) = found(prompt(template), rows=rows_of(subject="art"))
    assert mistake.path == "prompts[0].template"
    assert mistake.sentence == SAME + sentence


def test_a_chat_is_looked_at_as_a_whole(found, folder):
    system = "prompts[0]={name: plain, system: 'About {input}', template: 'Answer.'}"
    (folder / "chat.jinja").write_text("{{ messages }}")
    chats = [f"models[{at}].{key}" for at in range(2) for key in ("chat=true", "chat_template=chat.jinja")]
    (mistake,) = found(system, "prompts[1].template='{{ input }}'", *chats)
    assert mistake == (
        "prompts[0].system",
        f"{SAME}it shows {{input}} as literal text; write {{{{ input }}}}",
    )
    assert found(system.replace("{input}", "{{ input }}"), *chats) == []


@pytest.mark.parametrize(
    "template",
    [
        "<input>{{ input }}</input> [input] $input",
        'Reply as {"input": ...}, {{ input }}',
        "\\frac{input}{input} {{ input }}",
        "{% for word in input.split() %}{{ word }} {% endfor %}",
        "{{ input }} {other} ${name} %s {} {0}",
    ],
)
def test_a_prompt_that_shows_its_example_may_hold_anything(found, template):
    assert found(prompt(template)) == []


def test_a_field_that_stands_as_text_beside_another_is_told(found):
    (mistake,) = found(prompt("{context}\n{{ input }}"), rows=rows_of(context="c"))
    assert (
        mistake.sentence
        == "prompt 'plain' shows {context} as literal text, not as a field; write {{ context }}"
    )


def test_examples_that_ask_the_same_may_have_one_prompt(found):
    assert found(prompt("Say something."), rows=[{**row, "input": "-"} for row in rows_of()]) == []
    assert found(prompt("Say something."), rows=rows_of()[:1]) == []


@pytest.mark.parametrize(
    ("key", "text", "written"),
    [
        ("generate_configs[1].stop_seqs", r"\n\n", r'"\n\n"'),
        ("models[0].generate_config.stop_seqs", r"\nQ:", r'"\nQ:"'),
        ("models[0].generate_config.stop_seqs", r"\tQ:", r'"\tQ:"'),
        ("prompts[1].few_shot.delimiter", r"\n---\r\n", r'"\n---\r\n"'),
        ("prompts[1].few_shot.target_delimiter", r"\n", r'"\n"'),
    ],
)
def test_a_backslash_and_a_letter_where_a_line_break_is_meant(found, key, text, written):
    is_list = key.endswith("stop_seqs")
    settings = [f"{key}={json.dumps([text, 'Q:'] if is_list else text)}"]
    if "few_shot" in key:
        settings.insert(0, "prompts[1].few_shot.n=2")
    (mistake,) = found(*settings)
    assert mistake.path == f"{key}[0]" if is_list else key
    assert mistake.sentence.startswith(f"'{text}' contains a backslash and a")
    assert mistake.sentence.endswith(f"which single quotes keep: write {written} in double quotes")


@pytest.mark.parametrize(
    "template",
    [
        r"Q: {{ input }}\nA:",
        r"{{ input }}\n\n",
        r"{{ input }}\nanswer:",
        r"{{ input }}\tA",
        r"{{ input }}\r\n",
    ],
)
def test_a_template_in_single_quotes_is_told(found, template):
    (mistake,) = found(prompt(template))
    assert mistake.path == "prompts[0].template"
    assert "contains a backslash and a" in mistake.sentence
    assert mistake.sentence.endswith("put the text in double quotes, or write it in lines after a |")


@pytest.mark.parametrize(
    "template",
    [
        r"Is $\nabla f \neq \nu$, \theta \to \text{x} \times \rho?\right) {{ input }}",
        r"{{ input.split('\n') | join('\n\n') }}",
        "{{ input }}\n\n",
    ],
)
def test_latex_and_the_texts_of_expressions_are_meant(found, template):
    assert found(prompt(template)) == []
    assert found('generate_configs[1].stop_seqs=["\\n\\n", "Q:"]') == []


@pytest.mark.parametrize(
    ("judge", "end"),
    [
        ("{type: exact}", "counts as right, too; if it is wrong, write the targets as answers should be"),
        (
            "{type: exact_match}",
            "judge exact_match counts 5 as wrong; write the targets as answers should be",
        ),
        (
            "{type: all, judges: [{type: score}, {type: normalised}]}",
            "if it is wrong, write the targets as answers should be",
        ),
        ("{type: numeric}", None),
    ],
)
def test_targets_that_are_spelled_as_nobody_answers_are_told(found, judge, end):
    rows = [{**row, "target": target} for row, target in zip(rows_of(), [5.0, "x", [True, 7.0]], strict=True)]
    mistakes = found(f"judge={judge}", rows=rows)
    assert [each.path for each in mistakes] == ["dataset.fields.target"] * (end is not None)
    if end is not None:
        assert mistakes[0].sentence.startswith(
            "2 targets are spelled as no model would answer, such as 5.0: "
        )
        assert mistakes[0].sentence.endswith(end)


@pytest.mark.parametrize(
    "target",
    ['["Ann", "Ann B."]', "['Ann', 'Ann B.']", "['Ann' 'Ann B.']", "{'text': ['Ann'], 'answer_start': [3]}"],
)
@pytest.mark.parametrize(("judge", "is_told"), [("{type: exact}", True), ("{type: numeric}", False)])
def test_lists_of_answers_that_are_one_text_are_told(found, target, judge, is_told):
    rows = [{**row, "target": each} for row, each in zip(rows_of(), [target, "1", "2"], strict=True)]
    mistakes = found(f"judge={judge}", rows=rows)
    assert [each.path for each in mistakes] == ["dataset.fields.target"] * is_told
    if is_told:
        assert mistakes[0].sentence.startswith(
            f"a target is a list or an object written as text, such as {target}"
        )
        assert "as .jsonl or .parquet" in mistakes[0].sentence


@pytest.mark.parametrize("target", ["[1, 2]", "[x]", '{"name": "Ada"}', "['", '"a"', "{1, 2}"])
def test_other_brackets_in_targets_are_meant(found, target):
    rows = [{**row, "target": target} for row in rows_of()]
    assert not found("judge={type: exact}", rows=rows)


def test_validate_names_the_line(campaign_file, folder):
    path = campaign_file('template: "{{ input }}="', "template: 'Solve {input}\\n'")
    validated = winnow(folder, "validate", path)
    assert validated.returncode == 0
    assert "check: campaign.yaml:10: prompts[0].template: prompt 'plain' is the same" in validated.stdout
    assert "check: campaign.yaml:10: prompts[0].template: contains a backslash and an n" in validated.stdout


def test_the_first_run_names_what_was_not_read_as_it_stands(campaign_file, folder, database):
    rows = [*rows_of(loss=float("inf")), {"id": "", "input": "", "target": ""}]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = campaign_file(add=f"storage: {database.url}\n")
    said = []
    for _ in range(2):
        store_checked(check_campaign_file(path), say=lambda *each: said.append(each))
    assert said == [
        (
            "examples_read",
            "campaign 'letters': field 'loss' contains an infinite number (letters.jsonl, line 1), which "
            "cannot be stored; it is omitted from all prompts",
        ),
        ("examples_read", "campaign 'letters': a row is empty and skipped (letters.jsonl, line 4)"),
    ]


def test_an_autoevaluator_that_sees_nothing_of_an_example_is_told(found):
    grader = "{name: g, provider: transformers, model: checkpoints/small}"
    settings = [
        "objective=certify",
        "certify={alpha: 0.2, cost: prompt-length}",
        f"certify.autoevaluator={{model: {grader}, prompt: 'Answer {{question}}'}}",
        "selector={name: r-autoeval-plus}",
        "judge={type: exact}",
        "stopping={budget: 3, delta: 0.1}",
        "batch_size=1",
    ]
    (mistake,) = found(*settings, rows=[{**row, "target": None} for row in rows_of()])
    assert mistake.path == "certify.autoevaluator.prompt"
    assert mistake.sentence.endswith("it shows {question} as literal text; write {{ input }}")


def clustered(name, values, text="{} plus"):
    rows = [{"id": f"e{i}", "input": text.format(i), "target": "x"} for i in range(len(values))]
    return [row | ({} if name is None else {name: value}) for row, value in zip(rows, values, strict=True)]


def of_clusters(found, *settings, rows):
    return [each.sentence for each in found(*settings, rows=rows) if each.path == "dataset.cluster"]


@pytest.mark.parametrize("name", ["doc_id", "document", "context", "source_document_id", "Conversation ID"])
def test_a_field_that_names_documents_is_told(found, name):
    rows = clustered(name, [f"d{i // 2}" for i in range(12)])
    assert of_clusters(found, rows=rows) == [
        f"12 of 12 examples share their {name} with another one: if these were drawn together, set "
        f"dataset.cluster: {name}; otherwise intervals for new examples are too narrow"
    ]


def test_a_long_text_that_examples_share_is_told_under_any_name(found):
    rows = clustered("material", [f"text {i // 3} " * 40 for i in range(18)])
    assert "share their material with another one" in of_clusters(found, rows=rows)[0]


def test_inputs_that_begin_with_one_long_text_are_told(found):
    rows = clustered(None, range(12))
    for number, row in enumerate(rows):
        row["input"] = f"Story {number // 2}. " * 30 + f"Question {number}?"
    assert of_clusters(found, rows=rows) == [
        "12 of 12 examples begin with the same 200 characters as another one: if these were drawn together, "
        "name the field of their document in dataset.cluster; otherwise intervals for new examples are "
        "too narrow"
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("doc_id", [f"d{i}" for i in range(12)]),  # each has its own
        ("doc_id", ["d"] * 12),  # all have one
        ("doc_id", ["a", "b"] * 6),  # two groups
        ("doc_id", [None, *"aabbccddeef"]),
        ("doc_id", [["d"]] * 12),
        ("topic", [f"t{i // 2}" for i in range(12)]),  # a label, not a source
        (None, range(12)),
    ],
)
def test_other_fields_are_no_clusters(found, name, values):
    assert of_clusters(found, rows=clustered(name, list(values))) == []


def test_a_cluster_that_is_named_is_not_told_again(found):
    rows = clustered("doc_id", [f"d{i // 2}" for i in range(12)])
    assert of_clusters(found, "dataset.cluster=doc_id", rows=rows) == []


@pytest.mark.parametrize("url", ["winnow.db", "sqlite:/winnow.db", "mysql://host/x"])
def test_validate_refuses_a_storage_that_no_run_can_use(campaign_file, url):
    file = read_spec_file(campaign_file(), [f"storage={url}"])
    with pytest.raises(SpecError, match=r"^--set storage: the results database .*write sqlite:///"):
        validate(file)


def test_validate_keeps_to_the_width_of_a_terminal(campaign_file, monkeypatch, capsys):
    monkeypatch.setattr(output, "terminal_width", lambda _: 80)
    campaigns.validate(campaign_file())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4
    assert max(map(len, lines)) <= 80
