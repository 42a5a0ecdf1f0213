"""`winnow try` and `winnow compare`: outputs with their scores before anything is decided by them."""

import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import typer
import yaml
from campaigns import one_message, status_json, winnow
from faulty_server import SERVER_ERROR, UNKNOWN_MODEL, always, faulty_server
from tiny_images import COLOURS, colours_in, png

import winnow as library
from winnow.algorithms.claims import Claim
from winnow.flows.cli.start import comparing
from winnow.flows.cli.start.comparing import further
from winnow.flows.run.head_start import session_of
from winnow.flows.run.launch import launching
from winnow.flows.run.trust_prompt import Trust, approving
from winnow.tasks.answer.earlier_campaigns import SHOWN
from winnow.tasks.answer.model import Answer, CandidateStanding, Unscored
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_spec_file
from winnow.tasks.setup.yaml_file import SpecFile

pytestmark = pytest.mark.usefixtures("plain_runs")

ROWS = [("parcel", "shipping"), ("charged", "billing"), ("crash", "bug")]
TERSE, WORDY = "{{ text }}", "Label: {{ text }}"


def reply(call):
    """The right label: in a sentence where the prompt begins with Label."""
    label = next((label for word, label in ROWS if word in call.prompt), "none of them")
    return f"The label is {label}." if call.prompt.startswith("Label:") else label


@pytest.fixture
def server():
    with faulty_server(reply=reply, model="qwen") as found:
        yield found


@pytest.fixture
def folder(tmp_path):
    rows = [f"my {ROWS[i % 3][0]} {i},{ROWS[i % 3][1]}" for i in range(24)]
    (tmp_path / "tickets.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    return tmp_path


def compare(folder, server, *options, prompts=(TERSE, WORDY)):
    given = [part for each in prompts for part in ("--prompt", each)]
    return winnow(folder, "compare", "--model", f"{server.url}#qwen", *given, *options)


def data(*options):
    return ("--data", "tickets.csv", *options)


def write(folder, server, **keys):
    values = {
        "name": "tickets",
        "objective": "best-mean",
        "models": [f"{server.url}#qwen"],
        "prompts": [TERSE, WORDY],
        "dataset": {"path": "tickets.csv", "fields": {"input": "text", "target": "label"}},
        "judge": "exact",
    }
    (folder / "campaign.yaml").write_text(yaml.safe_dump(values | keys))


def test_compare_goes_from_data_to_an_answer_and_a_file(folder, server):
    ran = compare(folder, server, *data("--yes", "--judge", "exact"))
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout
    assert said.startswith("tickets: 1 model x 2 prompts on 24 examples of tickets.csv, judge exact\n")
    assert "guessed  input   the column text (--input COLUMN)" in said
    assert "guessed  target  the column label (--target COLUMN)" in said
    assert f"sends    prompts for at most 48 outputs to {server.url}" in said
    assert said.count("   target  ") == 6
    rows = (folder / "tickets.csv").read_text().splitlines()
    shown = re.findall(r"example #(\d+) .*\n +input +(.*)\n", said)
    assert len(shown) == 6
    for number, asked in shown:
        assert rows[int(number)].startswith(asked)  # the first row has the names of the columns
    assert said.count("score 1.000\n") == said.count("score 0.000\n") == 3
    assert "check: qwen/prompt-2 scored 0 on all 3 outputs, and 3 of them contain the target" in said
    assert "tickets: winner, " in said
    assert "Check first: qwen/prompt-2 (scored 0, although outputs contain the target)." in said
    assert said.endswith(
        "see outputs:\n"
        "  winnow query tickets comparisons --storage sqlite:///winnow.db\n"
        "make it stricter:\n"  # the answer is exact, up to an epsilon that fits the number of examples
        "  winnow run campaign.yaml --fork tickets-strict --set stopping.epsilon=0\n"
    )
    assert status_json(folder, "tickets")["best"] == "qwen/prompt-1"
    assert "Check first: qwen/prompt-2" in winnow(folder, "status").stdout  # of all campaigns, too
    again = winnow(folder, "run", "campaign.yaml")
    assert again.returncode == 0, again.stderr
    assert winnow(folder, "run", "campaign.yaml", "--fork", "other", "--set", "stopping.delta=0.01").stdout


WON = Answer(
    objective="best-mean",
    outcome="winner",
    claim=Claim(kind="proven", delta=0.05),
    reason="confident",
    best="a",
    candidates=(CandidateStanding(name="a"), CandidateStanding(name="b")),
    n_examples=24,
    delta=0.05,
)
STRICTER = "  winnow run campaign.yaml --fork tickets-strict --set "
MISSING = Unscored(name="b", told=24, unscored=2, reason="no_answer")
SPENT = BudgetUsage(kind="comparisons", key="stopping.budget", spent=30, limit=30)
TOKENS = BudgetUsage(kind="tokens", key="stopping.budget.tokens", spent=9, limit=9)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["make it stricter:", f"{STRICTER}stopping.delta=0.01"]),
        ({"delta": 0.01, "claim": Claim(kind="proven", delta=0.01)}, []),
        ({"claim": Claim(kind="exact")}, []),
        (
            {"claim": Claim(kind="exact"), "epsilon": 0.04},
            ["make it stricter:", f"{STRICTER}stopping.epsilon=0"],
        ),
        ({"claim": Claim(kind="heuristic"), "delta": None}, []),
        ({"outcome": "failed", "claim": Claim()}, []),
        (
            {"outcome": "undecided", "claim": Claim(), "limit": SPENT, "also_spent": (TOKENS,)},
            [
                "decide it with a larger budget:",
                "  winnow resume tickets --set stopping.budget=MORE --set stopping.budget.tokens=MORE "
                "--storage S",
            ],
        ),
        (
            {"outcome": "undecided", "claim": Claim(), "lacking": (MISSING,)},
            ["see which outcomes are missing to decide it:", "  winnow query tickets coverage --storage S"],
        ),
    ],
)
def test_after_compare_only_what_decides_more_is_offered(changes, lines):
    assert further(replace(WON, **changes), "tickets", Path("campaign.yaml"), "--storage S") == lines


def test_the_function_goes_on_with_the_campaign_of_the_command(folder, server, monkeypatch):
    monkeypatch.chdir(folder)
    model = f"{server.url}#qwen"
    assert compare(folder, server, *data("--yes", "--judge", "exact")).returncode == 0
    calls = len(server.calls)
    options = {"data": "tickets.csv", "models": [model], "judge": library.Judge("exact")}
    found = library.compare(**options, prompts=[TERSE, WORDY])
    assert (found.name, found.answer.best) == ("tickets", "qwen/prompt-1")
    assert len(server.calls) == calls
    with pytest.raises(SpecError, match="undo the change, or give the campaign another name"):
        library.compare(**options, prompts=[TERSE, "Say it: {{ text }}"])
    other = library.compare(**options, prompts=[TERSE, library.Prompt(name="b", template=WORDY)], name="b")
    assert other.answer.best == "qwen/prompt-1"
    with pytest.raises(SpecError, match="models is 7; give a list"):
        library.compare(data="tickets.csv", models=7)


def test_what_the_function_guesses_is_shown_with_progress(folder, server, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    library.compare(data="tickets.csv", models=f"{server.url}#qwen", prompts=[TERSE, WORDY], progress=True)
    assert capsys.readouterr().err.startswith("guessed input   the column text")


def test_both_commands_that_compare_ends_with_can_be_run(folder, server):
    said = compare(folder, server, *data("--yes", "--judge", "exact")).stdout
    commands = [line.split() for line in said.splitlines()[-4:] if line.startswith("  winnow ")]
    assert len(commands) == 2
    for _, *words in commands:
        assert winnow(folder, *words).returncode == 0


def test_guesses_are_said_before_anything_is_sent(folder, monkeypatch):
    with faulty_server(always(SERVER_ERROR), model="qwen") as server:
        said = []
        monkeypatch.setattr(comparing, "_guesses", lambda *_: said.append(len(server.calls)) or ["guesses"])
        compare(folder, server, *data("--yes"))
    assert said == [0]


def test_a_file_that_is_there_is_never_overwritten(folder, server):
    (folder / "campaign.yaml").write_text("mine")
    assert (
        "campaign.yaml exists already; run it with winnow run campaign.yaml, or name another file by --out"
        " FILE" in (one_message(compare(folder, server, *data("--yes"))))
    )
    assert (folder / "campaign.yaml").read_text() == "mine"
    assert server.calls == []
    assert compare(folder, server, *data("--yes", "--out", "other.yaml")).returncode == 0
    assert yaml.safe_load((folder / "other.yaml").read_text())["name"] == "tickets"


def test_without_a_terminal_only_yes_answers_the_question(folder, server):
    ran = compare(folder, server, *data())
    assert ran.returncode == 2
    assert "you cannot be asked whether these scores are correct; if they are, add --yes; " in one_message(
        ran
    )
    assert one_message(ran).endswith("if not, try --judge contains")
    assert not (folder / "campaign.yaml").exists()
    assert not (folder / "winnow.db").exists()
    of_contains = one_message(compare(folder, server, *data("--judge", "contains")))
    assert of_contains.endswith("if not, try --judge normalised")


def test_what_validate_warns_of_stands_before_the_question_and_with_yes(folder, server):
    rows = (folder / "tickets.csv").read_text().splitlines()
    without = [f"nothing {i}," for i in range(6)]
    (folder / "tickets.csv").write_text("\n".join([*rows, rows[1], *without]) + "\n")
    for ran in (compare(folder, server, *data()), compare(folder, server, *data("--yes"))):
        shown = " ".join(ran.stdout.partition("\n1. ")[0].split())
        assert "check: 6 of 31 examples have no target, such as " in shown
        assert "check: a row is the same as an earlier row" in shown
    checks = winnow(folder, "validate", "campaign.yaml").stdout.splitlines()
    checks = [each for each in checks if each.startswith("check: ")]
    assert len(checks) == 2
    assert all(each in shown for each in checks)


def test_a_wrong_model_name_ends_with_what_the_server_answered_and_a_remedy_of_this_command(folder):
    script = lambda call: None if call.body["model"] == "qwen" else UNKNOWN_MODEL  # noqa: E731
    with faulty_server(script, reply=reply, model="qwen") as server:
        ran = winnow(
            folder, "compare", *data("--yes", "--judge", "exact"), "--prompt", TERSE,
            "--model", f"{server.url}#qwen", "--model", f"{server.url}#qwne",
        )  # fmt: skip
    said = one_message(ran)
    assert "1 of 2 models cannot be used: 'qwne' (" in said
    assert "does not have the model (404: " in said
    assert "it lists qwen" in said
    assert said.endswith("correct them or start their servers, or leave out their --model")


@pytest.mark.parametrize("budget", [(), ("--budget", "32")])
def test_the_shown_budget_is_at_most_every_candidate_on_every_example(folder, server, budget):
    rows = (folder / "tickets.csv").read_text().splitlines()
    (folder / "tickets.csv").write_text("\n".join(rows[:12]) + "\n")
    said = compare(folder, server, *data("--yes", "--judge", "exact", *budget)).stdout
    said += winnow(folder, "status", "tickets").stdout
    assert "at most 22 outputs" in said
    assert said.count("comparisons 22 of 22\n") == 2
    assert "of 32" not in said


@pytest.mark.parametrize("yes", [True, False])
def test_in_a_terminal_the_answer_decides(folder, server, monkeypatch, yes):
    asked = []
    monkeypatch.setattr(comparing, "can_ask", lambda _: True)
    monkeypatch.setattr(typer, "confirm", lambda text, default: asked.append((text, default)) or yes)
    ran = compare(folder, server, *data("--judge", "exact"))
    assert asked == [("Are these scores correct?", False)]  # a warning stands above it
    assert (folder / "campaign.yaml").exists() is yes
    assert ran.returncode == (0 if yes else 2)
    assert (folder / "winnow.db").exists() is yes
    if yes:  # what was shown is not generated again
        with sqlite3.connect(folder / "winnow.db") as connection:
            stored = connection.execute("SELECT count(*) FROM generations").fetchone()[0]
        assert stored == len(server.calls) > 0
    else:
        assert "are stored in" not in ran.stdout
        assert "      1      1      1      1      1      1   --judge contains\n" in ran.stdout
        assert "--judge numeric" not in ran.stdout  # it scores none of them


def test_yes_permits_nothing_else(folder, server, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "tickets.csv"
    elsewhere.write_text((folder / "tickets.csv").read_text())
    ran = compare(folder, server, "--data", str(elsewhere), "--yes")
    assert "which is not permitted here; give --trust" in one_message(ran)
    assert server.calls == []
    assert compare(folder, server, "--data", str(elsewhere), "--yes", "--trust").returncode == 0


def test_several_models_and_one_prompt_from_a_file(folder, server):
    (folder / "terse.txt").write_text("{{ text }}\n")
    with faulty_server(reply=lambda call: "bug", model="weak") as weak:
        ran = winnow(
            folder, "compare", *data("--yes", "--budget", "20"), "--prompt", "@terse.txt",
            "--model", f"{server.url}#qwen", "--model", f"{weak.url}#weak",
        )  # fmt: skip
    assert ran.returncode in (0, 3), ran.stderr
    values = yaml.safe_load((folder / "campaign.yaml").read_text())
    assert values["prompts"] == [{"name": "terse", "template": "{{ text }}"}]
    assert [each["name"] for each in values["models"]] == ["qwen", "weak"]
    assert (values["stopping"], values["batch_size"]) == (
        {"delta": 0.05, "epsilon": "auto", "budget": 20},
        20,
    )
    assert status_json(folder, "tickets")["totals"]["comparisons"] <= 20


def test_without_a_prompt_one_is_guessed(folder, server):
    ran = compare(folder, server, "--model", f"{server.url}#other", *data("--yes"), prompts=())
    prompt = "{{ text }}\\n\\nAnswer with one of these alone: billing, bug, shipping."
    assert f'guessed  prompt  "{prompt}" (--prompt TEMPLATE)' in ran.stdout


def test_a_run_takes_over_the_engines_that_its_trial_loaded(folder, server, monkeypatch):
    monkeypatch.chdir(folder)
    write(folder, server)
    with launching() as launch:
        values = yaml.safe_load((folder / "campaign.yaml").read_text())
        checked = check_spec_file(SpecFile(Path("campaign.yaml"), values), approving(Trust()))
        assert len(launch.try_out(checked, 1).outputs) == 2
        campaign = launch.store(checked)
        for _ in range(2):  # it stays open after a session
            with session_of(campaign) as session:
                assert session.engines is campaign.pool


def test_examples_may_stand_on_the_command_line(folder, server):
    given = ("--example", "my parcel => shipping", "--example", "a => b crash => bug")
    ran = compare(folder, server, *given, "--yes", prompts=("{{ input }}", "Label: {{ input }}"))
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in (folder / "campaign-examples.jsonl").read_text().splitlines()]
    assert rows == [
        {"input": "my parcel", "target": "shipping"},
        {"input": "a => b crash", "target": "bug"},
    ]


@pytest.mark.parametrize("name", ["campaign-examples.jsonl", "campaign.yaml"])
def test_a_link_in_the_place_of_a_file_that_is_written_ends_in_a_sentence(folder, server, name):
    (folder / name).symlink_to(folder / "not" / "there")
    given = ("--yes", "--example", "my parcel => shipping")
    said = one_message(compare(folder, server, *given, prompts=("{{ input }}", "a {{ input }}")))
    assert f"{name} " in said
    assert "name another" in said
    assert not (folder / "not").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name your examples: --data FILE, or --example 'INPUT => TARGET' for each"),
        (("--data", "tickets.csv", "--example", "a => b"), "name your examples"),
        (("--example", "a"), "--example 'a': write 'INPUT => TARGET'"),
        (data("--prompt", "@gone.txt"), "--prompt @gone.txt: the file cannot be read: No such file"),
        (data("--judge", "{type"), "--judge {type: write a name, FILE.py:FUNCTION, or a mapping such as '{"),
        (data("--judge", "exakt"), "--judge: unknown judge 'exakt'; did you mean 'exact'?"),
        (
            data("--judge", "accuracy"),
            "did you mean 'exact'? nearest: acc, acc_norm, exact_match, numeric, any",
        ),
        (
            data("--model", "big"),
            "there is no folder big; write openai:big (OpenAI's server), http://HOST/v1#big",
        ),
        (data("--prompt", "{{ txet }}"), "--prompt '{{ txet }}': line 1 of the template: unknown variable"),
        (data("--model", "http://h/v1"), "names a server without a model; write http://h/v1#SERVED-NAME"),
        (data("--input", "txt"), "--input: unknown column 'txt'; did you mean 'text'?"),
        (("--data", "gone.csv"), "gone.csv"),
    ],
)
def test_what_cannot_be_compared_ends_in_a_sentence_before_anything_is_sent(folder, server, options, said):
    ran = compare(folder, server, "--yes", *options)
    assert ran.returncode == 2
    assert said in one_message(ran)
    assert server.calls == []
    assert not (folder / "campaign.yaml").exists()


def test_input_and_target_that_look_swapped_are_named(folder, server):
    ran = compare(folder, server, "--data", "tickets.csv", "--input", "label", "--target", "text", "--yes")
    assert "if input and target are swapped, give --input text --target label" in ran.stderr
    assert not server.calls
    right = compare(folder, server, *data("--yes"))
    assert "swapped" not in right.stderr


def test_commands_to_go_on_with_fit_a_terminal(folder, server):
    said = compare(folder, server, *data("--yes")).stdout.splitlines()
    commands = [line for line in said if line.startswith("  winnow ")]
    assert len(commands) == 2
    assert max(map(len, commands)) <= 80


def test_a_run_names_a_prompt_that_is_the_same_for_every_example(folder, server):
    write(folder, server, prompts=[TERSE, "Label it."])
    said = winnow(folder, "run", "campaign.yaml").stderr
    assert "check: prompts[1]: prompt 'prompt-2' is the same for every example" in said.replace(
        ".template", ""
    )


def test_one_candidate_has_nothing_to_be_compared_with(folder, server):
    ran = compare(folder, server, *data("--yes"), prompts=(TERSE,))
    assert "give a second --model or --prompt" in one_message(ran)


def test_a_prompt_without_a_column_is_refused_before_anything_is_sent(folder, server):
    refused = compare(folder, server, *data("--yes"), prompts=(TERSE, "Label: {text}"))
    said = "prompt-2 uses no column, so every example would get the same prompt: 'Label: {text}'; "
    assert said + "write {{ text }} where the input belongs" in one_message(refused)
    assert not server.calls


def test_a_second_comparison_has_a_name_of_its_own(folder, server):
    for out in ("a.yaml", "b.yaml"):
        assert compare(folder, server, *data("--yes", "--out", out)).returncode == 0
    assert yaml.safe_load((folder / "b.yaml").read_text())["name"] == "tickets-2"


def test_try_shows_every_candidate_and_begins_no_campaign(folder, server):
    write(folder, server)
    ran = winnow(folder, "try", "campaign.yaml", "--n", "2")
    assert ran.returncode == 0, ran.stderr
    blocks = ran.stdout.split("\n\n")
    assert [block.splitlines()[0].split(",")[0] for block in blocks[:4]] == [
        "1. qwen/prompt-1", "2. qwen/prompt-2", "3. qwen/prompt-1", "4. qwen/prompt-2",
    ]  # fmt: skip
    assert all("   output  " in block for block in blocks[:4])
    assert winnow(folder, "list").stdout == "no rows\n"


def test_outputs_of_a_trial_are_taken_over_and_its_examples_are_told(folder, server):
    write(folder, server)
    winnow(folder, "try", "campaign.yaml", "--n", "24")
    made = len(server.calls)
    ran = winnow(folder, "run", "campaign.yaml")
    assert {call.prompt for call in server.calls[made:]} <= {"Say hello."}
    assert (
        "outputs on 24 examples of these were shown before the campaign began (winnow try or compare)"
        in ran.stdout
    )


def test_a_campaign_without_a_trial_does_not_speak_of_one(folder, server):
    write(folder, server)
    assert "were shown before the campaign began" not in winnow(folder, "run", "campaign.yaml").stdout
    winnow(folder, "try", "campaign.yaml")  # which comes after it
    assert "were shown before the campaign began" not in winnow(folder, "status", "tickets").stdout


def test_a_trial_that_fails_leaves_no_campaign(folder):
    with faulty_server(always(SERVER_ERROR), model="qwen") as server:
        write(folder, server, execution={"max_retries": 0})
        ran = winnow(folder, "try", "campaign.yaml")
    assert ran.returncode in (1, 2)
    assert not (folder / "winnow.db").exists()


def test_what_a_killed_trial_left_is_cleared_by_the_next(folder, server):
    write(folder, server)
    winnow(folder, "run", "campaign.yaml", "--fork", "left.try-1")
    with sqlite3.connect(folder / "winnow.db") as connection:
        connection.execute(f"UPDATE campaigns SET versions = json_set(versions, '$.{SHOWN}', 'x')")
    winnow(folder, "try", "campaign.yaml")
    assert winnow(folder, "list").stdout == "no rows\n"


@pytest.mark.parametrize(
    "keys",
    [
        {"judge": {"type": "human", "question": "Right?", "levels": {"yes": 1.0, "no": 0.0}}},
        {
            "judge": {"type": "rules", "scorer": {"type": "exact"}},
            "objective": "best-duel",
            "selector": "llm-po",
            "stopping": {"budget": 40, "delta": 0.1},
        },
    ],
)
def test_judges_that_score_no_single_output_are_refused(folder, server, keys):
    write(folder, server, **keys)
    ran = winnow(folder, "try", "campaign.yaml")
    assert "does not score single outputs by itself, so winnow try cannot" in one_message(ran)
    assert server.calls == []


def test_compare_shows_models_the_images_of_a_column(folder, server):
    rows = []
    for number in range(12):
        name = [*COLOURS][number % 3]
        (folder / f"{name}.png").write_bytes(png(name))
        rows.append({"image": f"{name}.png", "text": f"Colour {number}?", "label": name})
    (folder / "tickets.csv").unlink()
    (folder / "pictures.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    server.reply = lambda call: (colours_in(call) or ["none"])[0]
    given = ("--data", "pictures.jsonl", "--images", "image", "--yes")
    ran = compare(folder, server, *given, prompts=("{{ text }}", "Name the colour."))
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"   input   Colour \d+\?\n   images  (red|green|blue)\.png\n   target  \1", ran.stdout)
    written = yaml.safe_load((folder / "campaign.yaml").read_text())["dataset"]
    assert written == {
        "path": "pictures.jsonl",
        "fields": {"input": "text", "target": "label"},
        "images": ["image"],
    }
    options = {"data": folder / "pictures.jsonl", "models": f"{server.url}#qwen", "images": "image"}
    found = library.compare(
        **options, prompts=["{{ text }}", "Name it."], storage=f"sqlite:///{folder}/b.db", trust=True
    )
    assert {each.estimate for each in found.answer.candidates} == {1.0}
