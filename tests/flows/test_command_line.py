"""What a user types and reads: commands, exit codes, sentences instead of tracebacks."""

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import campaign_processes as processes
import pandas as pd
import pytest
from campaigns import one_message, winnow
from stored_campaigns import new_database, store_campaign
from tiny_models import save_tiny_llama
from typer.testing import CliRunner
from waiting import PATIENCE_S, eventually
from without_prefect import leave_prefect_out

from winnow.flows.cli import app
from winnow.flows.cli.options import overrides_of
from winnow.flows.main import main
from winnow.storage.engine.database import open_database
from winnow.storage.records.leases import acquire
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.lease import LIFETIME, is_gone, now
from winnow.tasks.setup.yaml_file import overriding, read_spec_file


@pytest.fixture
def folder(tmp_path):
    processes.write_campaign(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(prefect_api, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    processes.write_campaign(folder)
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 3, result.stderr
    assert "heuristic" not in result.stdout
    return folder


@pytest.fixture
def without_prefect(monkeypatch):
    """The campaigns of a test that is not about Prefect run without it."""
    leave_prefect_out(monkeypatch)


def test_a_folder_that_has_been_removed_is_named(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit, match="the current folder was removed; change to an existing one"):
        main()


@pytest.mark.parametrize("name", ["2024", "true", "null", "1e3", "\N{GRINNING FACE}"])
def test_what_an_option_names_is_text_whatever_yaml_makes_of_it(folder, name):
    options = overrides_of(["seed=3"], fork=name, storage=f"sqlite:///a #{name}.db")
    values = overriding(read_spec_file(str(folder / "campaign.yaml")), options).values
    assert (values["name"], values["storage"]) == (name, f"sqlite:///a #{name}.db")


def edit(folder, before, after):
    spec = folder / "campaign.yaml"
    text = spec.read_text()
    assert before in text
    spec.write_text(text.replace(before, after))


BAD_SPECS = {
    "unknown key": ("batch_size: 8", "batchsize: 8", ":17: batchsize: unknown key; did you mean"),
    "wrong type": ("seed: 11", "seed: eleven", "campaign.yaml:3: seed: "),
    "duplicate names": ("name: two,", "name: one,", "the name 'one' is used twice"),
    "missing dataset": ("data.jsonl", "nodata.jsonl", "dataset.path: "),
    "missing column": ("target: target", "target: answer", "dataset.fields.target"),
    "unknown variable": ("!{{ input }}!", "!{{ question }}!", "prompts[2].template: "),
    "the target": ("!{{ input }}!", "!{{ target }}!", "prompts[2].template: "),
    "unsafe expression": ("!{{ input }}!", "{{ input.__class__.__mro__ }}", "prompts[2].template: "),
    "missing model": ("model-2, model_args", "model-9, model_args", "models[1].model: there is no"),
    "small budget": ("budget: 32", "budget: 7", "stopping: the budget (7) is smaller than one round"),
    "unknown selector": ("name: row-mean", "name: row-men", "did you mean 'row-mean'"),
    "unknown parameter": ("{name: row-mean}", "{name: row-mean, params: {b: 1}}", "has no parameter 'b'"),
    "unknown judge": ("type: contains", "type: contain", "judge.type: "),
    "unknown provider": ("two, provider: transformers", "two, provider: vlm", "models[1].provider: "),
    "not YAML": ("seed: 11", "seed: [11", "not YAML"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "told"), BAD_SPECS.values(), ids=BAD_SPECS)
def test_a_bad_spec_gets_one_message_and_no_database(folder, before, after, told):
    edit(folder, before, after)
    result = winnow(folder, "run", "campaign.yaml")
    assert result.returncode == 2
    assert told in one_message(result)
    assert "campaign.yaml" in result.stderr
    assert not (folder / "winnow.db").exists()


@pytest.mark.parametrize(
    ("content", "told"), [("", "has no rows"), ('{"id": "a", "input": "x", "target": "y"}\n' * 2, "'a'")]
)
def test_bad_data_get_one_message_and_no_database(folder, content, told):
    (folder / "data.jsonl").write_text(content)
    result = winnow(folder, "validate", "campaign.yaml")
    assert result.returncode == 2
    assert told in one_message(result)
    assert not (folder / "winnow.db").exists()


@pytest.mark.parametrize(
    ("judge", "remedy"),
    [("{type: bleu}", "set judge.tokenize: zh"), ("{type: bleu, tokenize: zh}", ""), ("{type: rouge}", "")],
)
def test_a_tokenizer_that_leaves_next_to_nothing_of_targets_is_named_with_the_remedy(folder, judge, remedy):
    (folder / "data.jsonl").write_text('{"id": "a", "input": "x", "target": "北京是中国的首都。"}\n')
    result = winnow(folder, "validate", "campaign.yaml", "--set", f"judge={judge}")
    assert result.returncode == 0
    assert ("next to nothing of 1 of 1 targets" in result.stdout) == bool(remedy)
    assert remedy in result.stdout


def test_init_writes_a_file_that_lacks_only_models_and_data_and_never_overwrites(tmp_path):
    assert winnow(tmp_path, "init").returncode == 0
    for seed, name in enumerate(("small", "large")):
        save_tiny_llama(tmp_path / "path" / "to" / name, seed=seed)
    (tmp_path / "data.jsonl").write_text('{"id": 1, "input": "1+1", "target": "2"}\n')
    assert "4 candidates x 1 example = 4 comparisons" in winnow(tmp_path, "validate", "campaign.yaml").stdout
    before = (tmp_path / "campaign.yaml").read_text()
    again = winnow(tmp_path, "init")
    assert again.returncode == 2
    assert "exists already" in one_message(again)
    assert (tmp_path / "campaign.yaml").read_text() == before


def test_an_unwritable_database_is_named(folder):
    result = winnow(folder, "run", "campaign.yaml", "--storage", "sqlite:////proc/no/winnow.db")
    assert result.returncode == 1
    assert "sqlite:////proc/no/winnow.db is unavailable" in one_message(result)


def test_a_database_of_a_newer_release_is_refused_unchanged(folder):
    winnow(folder, "db", "upgrade", "--storage", "sqlite:///winnow.db")
    database = open_database(f"sqlite:///{folder}/winnow.db")
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for arguments in (["run", "campaign.yaml"], ["status"], ["db", "upgrade"]):
        result = winnow(folder, *arguments)
        assert result.returncode == 1
        assert "9999" in one_message(result)
    assert processes.rows(folder, "SELECT count(*) FROM campaigns") == [(0,)]


def test_a_campaign_another_process_holds_is_refused_unchanged(folder):
    storage = processes.store(folder / "campaign.yaml")
    before = processes.rows(folder, "SELECT * FROM campaigns")
    elsewhere = Holder(host="elsewhere", pid=1, boot_id="b", pid_namespace="1", started_ticks=0)
    acquire(open_database(storage), 1, elsewhere, now=now(), lifetime=LIFETIME, is_gone=is_gone)
    more = ["--set", "stopping.budget=40"]
    for arguments in (["run", "campaign.yaml", *more], ["resume", "survivor"], ["resume", "survivor", *more]):
        result = winnow(folder, *arguments)
        assert result.returncode == 1
        assert "is being run by process 1 on elsewhere" in result.stderr
        assert "Traceback" not in result.stderr
    assert processes.rows(folder, "SELECT * FROM campaigns") == before
    assert winnow(folder, "status", "survivor").stdout.startswith("survivor: running")


def test_an_unknown_campaign_is_named_with_those_there_are(finished):
    for command in (["status"], ["resume"], ["show"], ["query"]):
        view = ["rounds"] if command == ["query"] else []
        result = winnow(finished, *command, "survivr", *view)
        assert result.returncode == 1
        assert "no campaign is named 'survivr'; there are: survivor" in one_message(result)


def test_another_definition_under_the_same_name_is_refused_with_the_difference(finished):
    before = processes.history(finished)
    result = winnow(finished, "run", "campaign.yaml", "--set", "seed=12")
    assert result.returncode == 2
    assert "seed: 11 -> 12" in one_message(result)
    assert "--fork" in result.stderr
    assert processes.history(finished) == before


def test_running_a_settled_campaign_again_answers_at_once(finished):
    before = processes.history(finished)
    result = winnow(finished, "run", "campaign.yaml")
    assert result.returncode == 3
    assert result.stdout.startswith("survivor: undecided")
    assert "error probability 0.05: the comparison budget is spent: 32 of 32" in result.stdout
    assert processes.history(finished) == before


MAIN = """
import sys
from winnow.flows.main import main
try: main()
finally: print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "needless"),
    [
        (["status"], {"numpy", "yaml", "jinja2", "httpx", "winnow.tasks.spec.campaign"}),
        (
            ["run", "campaign.yaml"],
            {"scipy.stats", "scipy.optimize", "httpx", "rich.live", "winnow.tasks.campaign.session"},
        ),
    ],
    ids=["status", "run"],
)
def test_what_answers_at_once_loads_nothing_that_it_does_not_need(finished, command, needless):
    ran = subprocess.run([sys.executable, "-c", MAIN, *command], cwd=finished, capture_output=True, text=True)
    assert "survivor: undecided" in ran.stdout, ran.stderr
    assert not {*needless, "prefect", "torch", "transformers", "vllm"} & set(ran.stderr.split())


def test_a_reader_that_has_seen_enough_and_a_full_disk_end_in_no_traceback(finished):
    ask = f"{shlex.quote(sys.executable)} -m winnow.flows.main query survivor comparisons --format"
    for command, said in (
        (f"{ask} csv | head -1", ""),
        (
            f"{ask} json > /dev/full",
            "winnow: No space left on device: the disk is full; free some ",
        ),
    ):
        ran = subprocess.run(["sh", "-c", command], cwd=finished, capture_output=True, text=True)
        assert ran.stderr.startswith(said), command
        assert "Traceback" not in ran.stderr, command
        assert "Error" not in ran.stderr, command
        assert ran.stdout.count("\n") == (1 if "head" in command else 0)


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl", "parquet"])
def test_a_file_that_cannot_be_written_is_named_and_an_older_one_stays(finished, tmp_path, form):
    asked = ("query", "survivor", "comparisons", "--format", form, "--output")
    older = tmp_path / "older"
    older.write_text("older")
    for path, said in (
        ("nowhere/x", "there is no folder nowhere; create it first"),
        (str(tmp_path), "is a folder; name a file"),
        ("winnow.db", "winnow.db is a database; name another file"),
    ):
        refused = winnow(finished, *asked, path)
        assert refused.returncode == 1
        assert said in one_message(refused)
    refused = winnow(finished, *asked, str(older), "--columns", "nope")
    assert (refused.returncode, older.read_text()) == (1, "older")
    assert [each.name for each in tmp_path.iterdir()] == ["older"]
    link = tmp_path / "link"
    link.symlink_to(older)
    assert "contains something else than this command writes" in one_message(
        winnow(finished, *asked, str(link))
    )
    older.write_text("")
    assert winnow(finished, *asked, str(link)).returncode == 0
    assert link.is_symlink()
    assert older.read_bytes() not in (b"older", b"")
    (tmp_path / "elsewhere").mkdir()
    for target in (older, tmp_path / "not there"):
        (trap := tmp_path / "elsewhere" / f"to {target.name}").symlink_to(target)
        refused = winnow(finished, *asked, str(trap))
        assert refused.returncode == 1
        assert f"is a link to {target} in another folder" in one_message(refused)
        assert target.exists() == (target == older)
    assert winnow(finished, "query", "survivor", "judgments", *asked[3:], str(older)).returncode in (0, 1)
    assert winnow(finished, "db", "check").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("report", "--all", "LINK"),
        ("report", "survivor", "--png", "LINK"),
        ("export", "survivor", "LINK"),
        ("db", "copy", "sqlite:///winnow.db", "sqlite:///LINK"),
        ("db", "upgrade", "--storage", "sqlite:///LINK"),
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_written_through_a_link_to_another_folder(finished, tmp_path, command, is_there):
    target, link = tmp_path / "elsewhere", tmp_path / "a" / "link"
    link.parent.mkdir()
    link.symlink_to(target)
    if is_there:
        target.mkdir()
    refused = winnow(finished, *(each.replace("LINK", str(link)) for each in command))
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("winnow: ")
    assert {*tmp_path.rglob("*")} == {link.parent, link} | ({target} if is_there else set())


@pytest.mark.parametrize(
    "command",
    [
        ("report", "survivor", "--html", "out/x.html"),
        ("report", "survivor", "--png", "out/x"),
        ("report", "--all", "out/x"),
        ("export", "survivor", "out/x"),
        ("query", "survivor", "comparisons", "--format", "csv", "--output", "out/x.csv"),
        ("db", "copy", "sqlite:///winnow.db", "sqlite:///out/x.db"),
        ("init", "out/x.yaml"),
        ("import", "scores", "scores.csv", "--name", "x", "--storage", "sqlite:///out/q.db"),
        ("compare", "--model", "m", "--example", "a => b", "--prompt", "{{ input }}", "--out", "out/x.yaml"),
    ],
)
def test_nothing_is_written_into_a_folder_that_is_a_link_to_another(finished, tmp_path, command):
    (target := tmp_path / "elsewhere").mkdir()
    (link := finished / "out").symlink_to(target)
    (finished / "scores.csv").write_text("candidate,example,score\n" + "a,1,1\nb,1,0\na,2,1\nb,2,0\n")
    try:
        refused = winnow(finished, *command)
        assert refused.returncode in (1, 2)
        assert f"out is a link to {target} in another folder; use that" in one_message(refused)
        assert list(target.iterdir()) == []
    finally:
        link.unlink()
        for name in ("scores.csv", "x.jsonl", "x.yaml"):
            (finished / name).unlink(missing_ok=True)


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet"])
def test_no_rows_take_the_place_of_older_ones(finished, tmp_path, form):
    older = tmp_path / "older"
    given = ("--format", form, "--output", str(older))
    assert winnow(finished, "query", "--sql", "SELECT 1 AS a", *given).returncode == 0
    nothing = ("query", "--sql", "SELECT 1 AS a WHERE 1 = 0", *given)
    assert winnow(finished, *nothing).returncode == 0
    read = {
        "csv": pd.read_csv,
        "json": Path.read_text,
        "jsonl": Path.read_text,
        "parquet": pd.read_parquet,
    }
    found = read[form](older)
    assert len(found) == 0 or json.loads(found) == []


def test_columns_of_one_name_are_all_shown(finished):
    asked = ("query", "--sql", "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a", "--json")
    assert json.loads(winnow(finished, *asked).stdout) == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]


def test_a_fork_reuses_every_generation_and_a_larger_budget_goes_on(finished, without_prefect):
    result = winnow(finished, "run", "campaign.yaml", "--fork", "again")
    assert result.returncode == 3
    assert "32 comparisons in 4 rounds" in result.stdout
    assert "  spent        0 generations" in result.stdout
    result = winnow(finished, "run", "campaign.yaml", "--fork", "again", "--set", "stopping.budget=40")
    assert result.returncode == 3
    assert "40 comparisons in 5 rounds" in result.stdout
    assert "  spent        8 generations" in result.stdout


def test_pulse_learns_from_an_earlier_campaign_and_its_history_is_part_of_its_identity(
    finished, without_prefect
):
    learned = ["--fork", "pulsed", "--set", "selector.name=pulse", "--set", "history=['campaign:survivor']"]
    result = winnow(finished, "run", "campaign.yaml", *learned)
    assert result.returncode == 3, result.stderr
    assert "32 comparisons in 4 rounds" in result.stdout
    shown = json.loads(winnow(finished, "show", "pulsed", "--json").stdout)
    assert shown["spec"]["history"] == ["campaign:survivor"]
    without = winnow(finished, "run", "campaign.yaml", "--fork", "pulsed", "--set", "selector.name=pulse")
    assert without.returncode == 2
    assert "history" in one_message(without)
    idle = winnow(finished, "validate", "campaign.yaml", "--set", "history=['campaign:survivor']")
    assert idle.returncode == 2
    assert "has no parameter 'history'" in one_message(idle)


def test_champion_learns_from_an_earlier_campaign_and_goes_on_as_if_it_had_not_been_stopped(
    finished, without_prefect
):
    learned = [
        *("--set", "selector.name=champion"),
        *("--set", "selector.params={start: champion}"),
        *("--set", "history=['campaign:survivor']"),
    ]
    assert winnow(finished, "validate", "campaign.yaml", *learned).returncode == 0
    for budget in (64, 120):  # beyond the common examples, which no history is bet on
        stopped = ["--fork", "stopped", *learned, "--set", f"stopping.budget={budget}"]
        assert winnow(finished, "run", "campaign.yaml", *stopped).returncode in (0, 3)
    whole = ["--fork", "whole", *learned, "--set", "stopping.budget=120"]
    assert winnow(finished, "run", "campaign.yaml", *whole).returncode in (0, 3)
    asked = "SELECT r.number, r.arms, r.examples FROM rounds r JOIN campaigns c ON c.id = r.campaign_id "
    rounds = {
        name: processes.rows(finished, asked + f"WHERE c.name = '{name}' ORDER BY r.number")
        for name in ("stopped", "whole")
    }
    assert len(rounds["whole"]) > 8
    n_before = sum(1 for _ in rounds["stopped"]) - len(rounds["whole"])
    assert n_before <= 1  # the budget of 64 may have cut a round short
    shown = json.loads(winnow(finished, "show", "whole", "--json").stdout)
    assert shown["spec"]["history"] == ["campaign:survivor"]
    other = winnow(finished, "validate", "campaign.yaml", "--set", "selector.name=race", *learned[4:])
    assert other.returncode == 2
    assert "has no parameter 'history'" in one_message(other)


@pytest.mark.parametrize("view", ["leaderboard", "comparisons", "rounds", "curve", "coverage"])
def test_views_say_the_same_in_every_format(finished, view):
    as_json = json.loads(winnow(finished, "query", "survivor", view, "--json").stdout)
    as_lines = winnow(finished, "query", "survivor", view, "--format", "jsonl").stdout.splitlines()
    as_csv = list(
        csv.DictReader(io.StringIO(winnow(finished, "query", "survivor", view, "--format", "csv").stdout))
    )
    written = winnow(
        finished, "query", "survivor", view, "--format", "parquet", "--output", f"{view}.parquet"
    )
    assert written.returncode == 0
    assert as_json == [json.loads(line) for line in as_lines]
    assert len(as_json) == len(as_csv) == len(pd.read_parquet(finished / f"{view}.parquet")) > 0
    assert list(as_json[0]) == list(as_csv[0])
    head = winnow(finished, "query", "survivor", view).stdout.splitlines()[0].split()
    first = "outcome" if view == "comparisons" else next(iter(as_json[0]))  # outputs side by side
    assert head[0] == first


def test_sql_is_read_only(finished):
    counted = winnow(finished, "query", "--sql", "SELECT count(*) AS n FROM comparisons", "--json")
    assert json.loads(counted.stdout)[0]["n"] >= processes.BUDGET
    for statement in (
        "DELETE FROM comparisons",
        "DROP TABLE judgments",
        "PRAGMA query_only=OFF; DELETE FROM judgments",
    ):
        refused = winnow(finished, "query", "--sql", statement)
        assert refused.returncode == 1
        assert "refused" in one_message(refused)


def test_json_is_on_every_read(finished):
    for arguments in (["status"], ["status", "survivor"], ["list"], ["show", "survivor"], ["selectors"],
                      ["judges"], ["db", "stats"]):  # fmt: skip
        assert json.loads(winnow(finished, *arguments, "--json").stdout)


def test_the_status_of_all_says_what_the_status_of_one_tells_beside(finished):
    *_, last = winnow(finished, "status").stdout.splitlines()
    assert last.startswith("for details, new examples and costs: ")
    assert last.endswith("winnow status NAME")


def test_the_database_is_sound_and_counted(finished):
    assert winnow(finished, "db", "check").returncode == 0
    tables = {
        row["table"]: row["rows"]
        for row in json.loads(winnow(finished, "db", "stats", "--json").stdout)["tables"]
    }
    assert tables["comparisons"] >= processes.BUDGET


@contextmanager
def started(folder):
    """A campaign in a process, running its rounds for long enough to be interrupted, and its server."""
    with processes.slow_server(seconds=0.05) as server:
        processes.have_served(folder / "campaign.yaml", server.url)
        process = subprocess.Popen(
            [sys.executable, "-m", "winnow.flows.main", "run", "campaign.yaml", "--set", "batch_size=1",
             "--set", "stopping.budget=60"],
            cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert eventually(lambda: (folder / "winnow.db").exists() and has_decisions(folder), every_s=0.02)
        yield process


def has_decisions(folder):
    return bool(
        processes.rows(folder, "SELECT 1 FROM sqlite_master WHERE name = 'decisions'")
        and processes.rows(folder, "SELECT 1 FROM decisions")
    )


def test_the_first_interrupt_finishes_the_round_and_the_hint_works(prefect_api, folder):
    with started(folder) as process:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
        assert "finishing the round" in told
        assert "continue with: winnow resume survivor" in told
        assert processes.rows(folder, "SELECT count(*) FROM rounds") == processes.rows(
            folder, "SELECT count(*) FROM decisions"
        )
        assert winnow(folder, "status", "survivor").stdout.startswith("survivor: interrupted")
        resumed = winnow(folder, "resume", "survivor", "--storage", f"sqlite:///{folder}/winnow.db")
        assert resumed.returncode in (0, 3)
    assert processes.has_ended(folder)


def test_the_second_interrupt_stops_at_once_and_frees_the_lease(prefect_api, folder):
    with started(folder) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    assert processes.rows(folder, "SELECT released_at IS NOT NULL FROM leases") == [(1,)]


def helps(*words):
    """What --help says of a command, and of all below it."""
    said = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).stdout
    below = re.findall(r"^│ ([a-z][a-z-]+) ", said, re.MULTILINE) if "─ Commands ─" in said else []
    return said + "".join(helps(*words, each) for each in below)


def test_no_help_folds_the_names_of_choices():
    said = helps()
    assert "View to print: leaderboard, comparisons" in said
    assert [line for line in said.splitlines() if "<" in line and ">" not in line.partition("<")[2]] == [
        each for each in said.splitlines() if "[1<=x" in each
    ]


@pytest.mark.parametrize("command", ["selectors", "schema"])
def test_the_baselines_of_papers_are_offered_only_on_request(tmp_path, command):
    few, every = (winnow(tmp_path, command, *options).stdout for options in ((), ("--all",)))
    assert "champion" in few
    for name in ("naive-pooling", "rucb", "lin-ucb"):
        assert (name in few, name in every) == (False, True)


LONG = "n" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", LONG],
        ["run", f"{LONG}.yaml"],
        ["run", "a\0b.yaml"],
        ["compare", "--data", f"{LONG}.csv", "--model", "openai:gpt-4o"],
        ["compare", "--data", "data.csv", "--model", LONG],
        ["export", "\udcff", "folder"],
        ["query", "a", "comparisons", "--limit", str(10**30)],
        ["query", "a", "costs", "--output", LONG],
        ["rescore", "a", "--name", "\udcff", "--judge", "exact"],
    ],
)
def test_names_that_no_file_or_row_can_have_end_in_a_sentence(arguments, tmp_path):
    store_campaign(new_database(tmp_path / "winnow.db"), "a")
    (tmp_path / "data.csv").write_text("input,target\n1+1,2\n")
    result = winnow(tmp_path, *arguments)
    assert result.returncode in (1, 2), result.stderr
    assert one_message(result)
