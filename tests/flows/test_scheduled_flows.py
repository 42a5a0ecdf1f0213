"""What a scheduled run does: names, reuse, what crashed, what comes late, and what is refused."""

import datetime as dt
import json
import logging
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing

import campaign_processes as processes
import httpx
import pytest
import work_pools
from campaigns import one_message, winnow
from stored_campaigns import store_checked
from test_command_line import edit

from winnow.flows import exit_codes
from winnow.flows.prefect_support.client import (
    PROCESS,
    labels_of_this_process,
    mark_crashed_runs,
    process_of,
)
from winnow.flows.prefect_support.masked_urls import url_of_a_worker
from winnow.flows.run.signals import Interrupts
from winnow.flows.schedule import flows as scheduled_flows
from winnow.flows.schedule.deployments import Scheduled, deployment_of
from winnow.flows.schedule.flows import plan_scheduled_run, run_scheduled, scheduled_campaign
from winnow.flows.schedule.trigger import When
from winnow.storage.admin.schema import existing
from winnow.storage.engine.database import open_database
from winnow.storage.records.leases import acquire
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.lease import LIFETIME, now
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_campaign_file

pytestmark = pytest.mark.usefixtures("prefect_api")

NOON = dt.datetime(2126, 11, 21, 12, tzinfo=dt.UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    processes.write_campaign(tmp_path)
    return tmp_path


def fired(folder, due=NOON, name=None, settings=()):
    """Run once here, as a schedule does; how it ended and what it said."""
    lines = []
    run = plan_scheduled_run(str(folder / "campaign.yaml"), settings, None, due, name)
    return run_scheduled(run, Interrupts(), lines.append), lines


def pairs(folder, number):
    """Who met which example in a campaign of the series."""
    name = series(folder)[number]["campaign"]
    met = json.loads(winnow(folder, "query", name, "comparisons", "--json").stdout)
    return {(row["candidate"], row["example"]) for row in met}


def series(folder):
    result = winnow(folder, "query", "--series", "survivor", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_each_run_is_a_campaign_of_its_own_that_reuses_what_the_last_one_generated(folder):
    how, lines = fired(folder)
    assert how == "done"
    assert "32 new generations, 0 reused from other campaigns" in lines[-1]
    # More data than yesterday: texts on the old examples are there already.
    with (folder / "data.jsonl").open("a") as file:
        file.write(json.dumps({"id": "new", "input": "new", "target": "a"}) + "\n")
    edit(folder, "budget: 32", "budget: 150")
    how, lines = fired(folder, NOON + dt.timedelta(days=1))
    rows = series(folder)
    assert [row["campaign"] for row in rows] == ["survivor-21261121T120000Z", "survivor-21261122T120000Z"]
    assert (rows[0]["generated"], rows[0]["reused"]) == (32, 0)
    assert rows[1]["generated"] + rows[1]["reused"] == rows[1]["comparisons"]
    # The second one may know enough before it has met all that the first one met.
    assert rows[1]["reused"] == len(pairs(folder, 0) & pairs(folder, 1)) > 16
    assert (rows[1]["state"], rows[1]["outcome"]) == ("ended", "winner")
    assert lines[-1].startswith("survivor-21261122T120000Z: winner, ")
    how, lines = fired(folder, NOON + dt.timedelta(days=2))
    assert lines[-1].endswith("; the same winner as before")
    # The first one left open who wins.
    assert [row["changed"] for row in series(folder)] == [None, None, False]
    listed = json.loads(winnow(folder, "list", "--json").stdout)
    assert {row["series"] for row in listed} == {"survivor"}


def test_a_firing_goes_on_without_models_that_cannot_be_asked_where_it_may(folder):
    nobody = "{name: two, provider: openai, model: m, model_base_url: 'http://127.0.0.1:9/v1'}"
    edit(folder, f"{{name: two, provider: transformers, model: {folder}/model-2, model_args: "
         "{max_model_len: 64}}", nobody)  # fmt: skip
    once = "execution.max_retries=0"
    with pytest.raises(SpecError, match="1 of 2 models cannot be used: 'two'"):
        fired(folder, settings=[once])
    how, lines = fired(folder, settings=[once, "execution.allow_missing=true"])
    assert how == "done"
    assert lines[-2].startswith("campaign 'survivor-21261121T120000Z' continues without 'two' (http://")
    assert lines[-1].startswith("survivor-21261121T120000Z: undecided without two, ")


def test_a_scheduled_run_that_is_run_again_finds_its_own_campaign(folder):
    fired(folder)
    before = processes.history(folder)
    how, lines = fired(folder)
    assert how == "done"
    assert len(lines) == 1
    assert processes.history(folder) == before


def test_a_scheduled_run_finishes_what_crashed_before_it_begins_its_own(folder):
    storage = f"sqlite:///{folder}/winnow.db"
    left = check_campaign_file(str(folder / "campaign.yaml"), ["name=survivor-crashed", f"storage={storage}"])
    store_checked(left, "survivor")
    how, lines = fired(folder)
    assert how == "done"
    assert [line.partition(":")[0] for line in lines] == ["survivor-crashed", "survivor-21261121T120000Z"]
    assert [row["outcome"] for row in series(folder)] == ["undecided", "undecided"]


@pytest.mark.parametrize("before", ["told", "deleted", "gone"])
def test_what_prefect_cannot_be_told_of_the_end_is_no_failure_of_the_campaign(folder, monkeypatch, before):
    from prefect.client.orchestration import SyncPrefectClient

    request = SyncPrefectClient.request

    def late(client, method, path, **given):
        """The server heard of the end, but its answer got lost; or the run, or the server itself, is gone."""
        if "set_state" in path and given["json"]["state"]["type"] == "COMPLETED":
            if before == "gone":
                raise httpx.ConnectError("[Errno 111] Connection refused")
            if before == "deleted":
                request(client, "DELETE", "/flow_runs/{id}", path_params=given["path_params"])
            else:
                request(client, method, path, **given)
        return request(client, method, path, **given)

    monkeypatch.setattr(SyncPrefectClient, "request", late)
    edit(folder, "budget: 32", "budget: 16")
    how, lines = fired(folder)
    assert how == "done"
    assert lines[-1].startswith("survivor-21261121T120000Z: undecided")


def test_a_scheduled_run_that_was_due_before_the_last_campaign_began_is_skipped(folder):
    fired(folder)
    how, lines = fired(folder, dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    assert how == "skipped"
    assert "survivor-21261121T120000Z began after this run was due" in lines[0]
    assert len(series(folder)) == 1


def test_a_held_campaign_is_left_to_its_holder(folder):
    fired(folder, name="mine", settings=["stopping.budget=8"])
    database = open_database(f"sqlite:///{folder}/winnow.db")
    elsewhere = Holder(host="elsewhere", pid=1, boot_id="b", pid_namespace="1", started_ticks=1)
    acquire(database, 1, elsewhere, now=now(), lifetime=LIFETIME, is_gone=lambda _: False)
    database.close()
    with_room = winnow(folder, "resume", "--all")
    assert with_room.returncode == 0
    assert "nothing to resume" in with_room.stdout


def test_resume_all_goes_on_after_a_failure_and_ends_with_the_worst_code(folder):
    for name, models in (("broken", 2), ("sound", 1)):
        given = [f"name={name}"] + (["exclude=[{model: two}]"] if models == 1 else [])
        store_checked(check_campaign_file(str(folder / "campaign.yaml"), given))
    (folder / "model-2" / "config.json").write_text("{}")
    result = winnow(folder, "resume", "--all")
    assert result.returncode == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith("broken: failed: ")
    assert lines[-1].startswith("sound: undecided, best one/")


def test_resume_all_names_a_campaign_that_cannot_be_read_and_goes_on_with_the_others(folder):
    for name in ("damaged", "sound"):
        given = [f"name={name}", "exclude=[{model: two}]"]
        store_checked(check_campaign_file(str(folder / "campaign.yaml"), given))
    with closing(sqlite3.connect(folder / "winnow.db")) as connection:
        connection.execute("UPDATE campaigns SET spec = '[' WHERE name = 'damaged'")
        connection.commit()
    result = winnow(folder, "resume", "--all")
    assert result.returncode == 1
    first, *others = result.stdout.splitlines()
    assert first.startswith("campaign 1 of this database ")
    assert others[-1].startswith("sound: undecided, best one/")


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (exit_codes.UNDECIDED, "Completed"),
        (exit_codes.WORSE, "Completed"),
        (exit_codes.ERROR, "Failed"),
        (exit_codes.FORCED, "Cancelled"),
    ],
)
def test_a_flow_that_goes_on_with_campaigns_has_failed_where_one_of_them_came_to_no_answer(
    folder, monkeypatch, code, state
):
    assert winnow(folder, "db", "upgrade").returncode == 0
    monkeypatch.setattr(scheduled_flows, "resume_each", lambda *_: code)
    assert scheduled_flows.resume_all(storage="sqlite:///winnow.db", return_state=True).name == state


def test_a_scheduled_run_does_what_its_user_allowed_and_a_message_allows_nothing(
    folder, tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    logs = tmp_path_factory.mktemp("elsewhere") / "logs"
    edit(folder, f"log_folder: {folder}/logs", f"log_folder: {logs}")
    file = folder / "campaign.yaml"
    text = f"write logs into '{logs}'"
    refused = pytest.raises(SpecError, match=r"write logs into .*elsewhere.*is not permitted")
    with refused as said:
        fired(folder)
    command = re.search(r"cd (\S+) && winnow (.*) --trust if you know", str(said.value))
    assert command[1] == str(folder)
    for given in ({"trust": [text]}, {"settings": [f"execution.log_folder={logs}"]}):
        with refused:  # nor do settings, which count as the user's own on a command line
            scheduled_campaign(str(file), **given)
    assert not (folder / "winnow.db").exists()
    assert winnow(folder, *shlex.split(command[2]), "--trust").returncode == 0
    assert fired(folder)[0] == "done"
    # Others of the series go on under the same permissions, and under nothing else.
    store_checked(check_campaign_file("campaign.yaml", ["name=left"]), "survivor")
    assert fired(folder, NOON + dt.timedelta(days=1))[0] == "done"
    assert winnow(folder, "resume", "--all").stdout.startswith("nothing to resume")


def test_a_parameter_of_deployments_of_before_is_ignored_with_a_sentence(folder):
    said = scheduled_campaign(str(folder / "campaign.yaml"), trust=["anything"], return_state=True).message
    assert said.startswith("the parameter 'trust' of this deployment is ignored")


def test_a_database_that_a_message_names_elsewhere_has_to_be_allowed(folder, tmp_path_factory, monkeypatch):
    url = f"sqlite:///{tmp_path_factory.mktemp('elsewhere')}/x.db"
    elsewhere = r"keep results in .*is not permitted.*"
    with pytest.raises(SpecError, match=rf"{elsewhere}set WINNOW_STORAGE"):
        scheduled_flows.resume_all(storage=url)
    with pytest.raises(SpecError, match=rf"{elsewhere} --set storage={url} --trust"):
        scheduled_campaign(str(folder / "campaign.yaml"), storage=url)
    assert winnow(folder, "db", "upgrade", "--storage", url).returncode == 0
    monkeypatch.setenv("WINNOW_STORAGE", url)
    assert scheduled_flows.resume_all(storage=url, return_state=True).name == "Completed"


def test_a_terminal_is_told_of_a_run_that_fails_where_the_log_of_prefect_is_off(folder, caplog, capsys):
    (folder / "campaign.yaml").write_text("name: [")
    caplog.set_level(logging.CRITICAL, "prefect.flow_runs")  # as the command has it
    with pytest.raises(SpecError):
        scheduled_campaign("campaign.yaml")
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    told = rf"the run of campaign\.yaml that was due at {when} failed: campaign\.yaml:1"
    assert re.match(told, capsys.readouterr().out)
    caplog.set_level(logging.ERROR, "prefect.flow_runs")  # where it says so itself
    with pytest.raises(SpecError):
        scheduled_campaign("campaign.yaml")
    assert capsys.readouterr().out == ""


def test_resume_wants_a_name_or_all_of_them(folder):
    for arguments in ([], ["survivor", "--all"]):
        result = winnow(folder, "resume", *arguments)
        assert result.returncode == 2
        assert one_message(result) == "name a campaign to resume, or give --all"


def test_an_unknown_series_is_refused_with_those_there_are(folder):
    fired(folder)
    result = winnow(folder, "query", "--series", "survivors")
    assert result.returncode == 1
    assert one_message(result) == "no series of campaigns is named 'survivors'; there are: survivor"


REFUSED = {
    "no time": ([], "no time is given: add --cron EXPR"),
    "two times": (["--cron", "0 2 * * *", "--interval", "60"], "exclude each other; give one of them"),
    "bad cron": (["--cron", "at noon"], "'at noon' is not a cron expression"),
    "no such day": (["--cron", "0 2 30 2 *"], "'0 2 30 2 *' never fires; correct its day or month"),
    "bad zone": (["--cron", "0 2 * * *", "--timezone", "Mars/Olympus"], "'Mars/Olympus' is not a time zone"),
    "unlisted zone": (["--cron", "0 2 * * *", "--timezone", "posix/UTC"], "'posix/UTC' is not a time zone"),
    "bad interval": (["--interval", "0"], "--interval 0 is not a number of seconds"),
    "a confidence": (
        ["--cron", "0 2 * * *", "--work-pool", "p", "--set", "stopping.delta=0.95"],
        "--set stopping.delta: delta is the probability of a wrong answer, not the confidence",
    ),
    "no pool": (["--cron", "0 2 * * *", "--work-pool", "nowhere"], "there is no work pool 'nowhere'"),
    "folder alone": (["--cron", "0 2 * * *", "--folder", "/work"], "--folder needs --work-pool"),
    "relative": (["--cron", "0 2 * * *", "--work-pool", "p", "--folder", "a"], "not an absolute path"),
    "long name": (["--cron", "0 2 * * *", "--set", f"name={'n' * 90}"], "has at most 83 characters"),
}


@pytest.mark.parametrize(("arguments", "told"), REFUSED.values(), ids=REFUSED)
def test_a_schedule_that_makes_no_sense_gets_one_message(folder, arguments, told):
    result = winnow(folder, "schedule", "campaign.yaml", *arguments)
    assert result.returncode == 2
    assert told in one_message(result)


def test_a_name_of_another_files_schedule_is_refused_and_the_same_file_takes_its_own_place(folder):
    pool = work_pools.make_pool(f"names-{os.getpid()}")
    mine, another = f"mine-{os.getpid()}", f"another-{os.getpid()}"
    (folder / "other.yaml").write_text((folder / "campaign.yaml").read_text())

    def schedule(file, cron, name):
        return winnow(folder, "schedule", file, "--cron", cron, "--work-pool", pool, "--name", name)

    assert schedule("campaign.yaml", "0 0 1 1 *", mine).returncode == 0
    refused = schedule("other.yaml", "0 0 2 1 *", mine)
    assert refused.returncode == 2
    assert f"'{mine}' is the schedule of {folder / 'campaign.yaml'} on" in one_message(refused)
    assert f"prefect deployment delete 'scheduled-campaign/{mine}'" in one_message(refused)
    assert schedule("other.yaml", "0 0 2 1 *", another).returncode == 0
    assert schedule("campaign.yaml", "0 0 3 1 *", mine).returncode == 0
    assert work_pools.crons(f"scheduled-campaign/{mine}") == ["0 0 3 1 *"]
    assert work_pools.crons(f"scheduled-campaign/{another}") == ["0 0 2 1 *"]


def test_a_served_schedule_and_one_of_a_work_pool_do_not_take_each_other_s_place(folder):
    pool, name = work_pools.make_pool(f"beside-{os.getpid()}"), f"beside-{os.getpid()}"
    often = ("schedule", "campaign.yaml", "--cron", "0 0 1 1 *", "--name", name)
    delete = f"prefect deployment delete 'scheduled-campaign/{name}'"
    when = When(cron="0 0 2 1 *", interval=None, timezone=None)
    file = str(folder / "campaign.yaml")
    scheduled = Scheduled(spec=file, settings=[], storage=None, name=name, when=when)
    served = deployment_of(scheduled).apply()
    refused = one_message(winnow(folder, *often, "--work-pool", pool))
    assert f"'{name}' is the schedule of {file}, served from a " in refused
    assert "end it there with Ctrl-C, or give another --name" in refused
    assert refused.endswith(delete)
    assert work_pools.crons(f"scheduled-campaign/{name}") == ["0 0 2 1 *"]
    with work_pools.client_of_prefect() as client:
        client.pause_deployment(served)  # as Prefect does where it is served no more
    assert winnow(folder, *often, "--work-pool", pool).returncode == 0
    refused = winnow(folder, *often)
    assert refused.returncode == 2
    assert one_message(refused) == (
        f"'{name}' is the schedule of work pool '{pool}', which this one would replace; give another --name, "
        f"or end that schedule: {delete}"
    )
    assert "serving" not in refused.stdout


def test_a_password_stays_with_the_worker(monkeypatch):
    url = "postgresql+psycopg://ann:secret@host/results"
    monkeypatch.delenv("WINNOW_STORAGE", raising=False)
    with pytest.raises(SpecError, match="set WINNOW_STORAGE to the full URL"):
        url_of_a_worker("postgresql+psycopg://ann:***@host/results")
    assert url_of_a_worker("sqlite:///there.db") == "sqlite:///there.db"
    monkeypatch.setenv("WINNOW_STORAGE", url)
    assert url_of_a_worker("postgresql+psycopg://ann:***@host/results") == url
    assert url_of_a_worker(None) == url
    assert url_of_a_worker("sqlite:///there.db") == "sqlite:///there.db"


def test_prefect_is_not_told_a_password_that_is_set_as_a_key_of_the_file(folder):
    pool, name = work_pools.make_pool(f"silent-{os.getpid()}"), f"silent-{os.getpid()}"
    where = ["--cron", "0 0 1 1 *", "--work-pool", pool, "--name", name]
    changes = ["--set", "storage=postgresql://ann:s3cret@host/results", "--set", "seed=3"]
    result = winnow(folder, "schedule", "campaign.yaml", *where, *changes)
    assert result.returncode == 0, result.stderr
    with work_pools.client_of_prefect() as client:
        told = client.read_deployment_by_name(f"scheduled-campaign/{name}").parameters
    assert told["storage"] == "postgresql://ann:***@host/results"
    assert told["settings"] == ["seed=3"]


def test_only_flow_runs_of_dead_processes_are_marked_as_crashed(folder):
    winnow(folder, "db", "upgrade")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    alive = labels_of_this_process()
    dead = {PROCESS: alive[PROCESS].replace(f":{process_of(alive).pid}:", f":{child.pid}:")}
    elsewhere = {PROCESS: "else:where:1:b:1-2:1"}
    # Imported here: Prefect reads its settings when it is imported, and the fixture makes them.
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from winnow.flows.run.flow import run_campaign

    kinds = {
        "dead": (["winnow"], dead),
        "alive": (["winnow"], alive),
        "elsewhere": (["winnow"], elsewhere),
        "others": ([], dead),
        "unlabelled": (["winnow"], {}),
    }
    with get_client(sync_client=True) as client:
        runs = {}
        for kind, (tags, labels) in kinds.items():
            runs[kind] = client.create_flow_run(
                run_campaign, name=f"{folder.name}-{kind}", state=Running(), tags=tags
            )
            client.update_flow_run_labels(runs[kind].id, labels)
        with existing(f"sqlite:///{folder}/winnow.db") as database:
            marked = mark_crashed_runs(database)
        states = {kind: client.read_flow_run(run.id).state for kind, run in runs.items()}
        for run in runs.values():
            client.delete_flow_run(run.id)
    assert f"{folder.name}-dead" in marked
    assert f"process {child.pid} on" in states["dead"].message
    assert {kind: state.type.value for kind, state in states.items()} == {
        "dead": "CRASHED",
        "alive": "RUNNING",
        "elsewhere": "RUNNING",
        "others": "RUNNING",
        "unlabelled": "RUNNING",
    }
    assert process_of(elsewhere) == Holder(
        host="else:where", pid=1, boot_id="b", pid_namespace="1-2", started_ticks=1
    )
