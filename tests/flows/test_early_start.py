"""vLLM's imports and Prefect's server begin as soon as a campaign has texts to generate, and for no other."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from subprocess import PIPE, Popen
from types import SimpleNamespace

import psutil
import pytest
from process_commands import command_of
from waiting import PATIENCE_S, eventually

from winnow.flows.prefect_support import server
from winnow.flows.run import launch
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.load import check_spec_file
from winnow.tasks.setup.yaml_file import SpecFile

SPEC = {
    "name": "early",
    "objective": "best-mean",
    "seed": 1,
    "models": [{"name": "one", "provider": "vllm", "model": "one"}],
    "prompts": [{"name": "plain", "template": "{{ input }}"}],
    "dataset": {"path": "data.jsonl"},
    "judge": {"type": "contains"},
    "selector": {"name": "champion"},
    "batch_size": 4,
    "stopping": {"budget": 8, "delta": 0.05},
}
LOG = Path(".winnow/logs/early/vllm-imports.log")
IMPORTING_NOTHING = """
def preload():
    print("imported", flush=True)
"""


@pytest.fixture(autouse=True)
def _nothing_to_import(tmp_path, monkeypatch):
    (tmp_path / "imports_of_early.py").write_text(IMPORTING_NOTHING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("winnow.tasks.campaign.placement.WORKER", "imports_of_early")
    monkeypatch.setattr(launch, "early_server", nullcontext)


def servers():
    return [each for each in psutil.Process().children() if "imports_of_early" in command_of(each)]


def approved(**changes):
    file = SpecFile(Path("campaign.yaml"), {**SPEC, **changes})
    seen = []
    with launch.launching() as begun_early:
        with pytest.raises(SpecError, match=r"data\.jsonl"):
            check_spec_file(file, lambda *given: seen.append(len(servers())), begun_early.recall)
        found = servers()
        begun = bool(found) and eventually(lambda: "imported" in LOG.read_text())
    assert seen == [0], "nothing begins before the campaign is approved"
    assert servers() == []
    return begun


def test_imports_begin_once_a_campaign_on_vllm_is_approved_and_end_with_the_command():
    assert approved()


@pytest.mark.parametrize(
    "changes",
    [
        {"models": [{"name": "one", "provider": "transformers", "model": "one"}]},
        {"execution": {"cluster": "ray"}},
    ],
    ids=["no model on vLLM", "engines elsewhere"],
)
def test_nothing_is_imported_for_engines_that_do_not_need_it(changes):
    assert not approved(**changes)
    assert not LOG.exists()


def test_nothing_is_imported_for_a_campaign_that_is_decided(monkeypatch):
    monkeypatch.setattr(
        launch.Launch, "_find_record", lambda *_: SimpleNamespace(spec={"models": [], "prompts": []})
    )
    monkeypatch.setattr(launch.Launch, "_campaign", lambda *_: None)
    monkeypatch.setattr(launch, "status_now", lambda *_: SimpleNamespace(is_settled=True))
    monkeypatch.setattr("winnow.tasks.setup.load.revisions_of", lambda begun: {})
    assert not approved()


def test_nothing_is_imported_where_vllm_is_not_installed(monkeypatch):
    monkeypatch.setattr("winnow.tasks.plugins.extras.find_spec", lambda _: None)
    assert not approved()


@pytest.fixture
def waiting_servers(monkeypatch):
    """The servers that are begun, each of which only waits for its end."""
    begun = []

    def waiting(command, **options):
        begun.append(Popen(["cat"], stdin=PIPE, stdout=options["stdout"]))
        return begun[-1]

    monkeypatch.setattr(server.subprocess, "Popen", waiting)
    monkeypatch.setattr(server, "_hand_over_events", lambda: None)
    monkeypatch.setattr(server, "_wait_until_healthy", lambda found: found)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(server, "has_own_server", lambda: False)
    return begun


def test_the_flow_runs_on_the_server_that_came_up_beside_the_checks(waiting_servers):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        with server.early_server():
            assert [each.poll() for each in waiting_servers] == [None]
            with server.prefect_server():
                url = PREFECT_API_URL.value()
                assert url.startswith("http://127.0.0.1:")
            with server.prefect_server():
                assert PREFECT_API_URL.value() == url
        assert [each.poll() is None for each in waiting_servers] == [False]
        with server.prefect_server():
            assert PREFECT_API_URL.value() != url
    assert [each.poll() is None for each in waiting_servers] == [False, False]


def test_runs_of_one_process_at_a_time_share_a_server_until_the_last_has_ended(waiting_servers, monkeypatch):
    """One that took the server, or Prefect's thread for its events, from the others would break them."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    handed_over = []
    monkeypatch.setattr(server, "_hand_over_events", lambda: handed_over.append(len(handed_over)))
    second_runs, first_has_ended = threading.Event(), threading.Event()
    urls = []

    def second():
        with temporary_settings(restore_defaults={PREFECT_API_URL}), server.prefect_server():
            urls.append(PREFECT_API_URL.value())
            second_runs.set()
            assert first_has_ended.wait(PATIENCE_S)
            urls.append((handed_over[:], waiting_servers[0].poll()))

    with ThreadPoolExecutor(1) as threads:
        with (
            temporary_settings(restore_defaults={PREFECT_API_URL}),
            server.early_server(),
            server.prefect_server(),
        ):
            running = threads.submit(second)
            assert second_runs.wait(PATIENCE_S)
            urls.append(PREFECT_API_URL.value())
        first_has_ended.set()
        running.result()
    assert urls == [urls[0], urls[0], ([], None)]
    assert handed_over == [0]
    assert [each.poll() is None for each in waiting_servers] == [False]
    with server.early_server():
        assert len(waiting_servers) == 2


def test_a_server_of_the_users_is_used_though_one_was_begun(waiting_servers, monkeypatch):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setattr(server, "require_answer", lambda url: None)
    with (
        server.early_server(),
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}),
        server.prefect_server(),
    ):
        assert PREFECT_API_URL.value() == "http://127.0.0.1:1/api"
    assert [each.poll() is None for each in waiting_servers] == [False]


@pytest.mark.parametrize("name", ["PREFECT_API_URL", "PREFECT_PROFILE"])
def test_none_is_begun_beside_a_server_of_the_users(tmp_path, monkeypatch, name):
    monkeypatch.delitem(server.sys.modules, "prefect.settings", raising=False)
    for each in ("PREFECT_API_URL", "PREFECT_PROFILE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert not server.has_own_server()
    monkeypatch.setenv(name, "mine")
    assert server.has_own_server()
    monkeypatch.delenv(name)
    (tmp_path / "profiles.toml").touch()
    assert server.has_own_server()


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_looked_for_after_a_failed_import_as_it_was_before(collects):
    seen = []

    def fail():
        seen.append(gc.isenabled())
        raise ImportError

    try:
        (gc.enable if collects else gc.disable)()
        with pytest.raises(ImportError), not_collecting():
            fail()
        assert (seen, gc.isenabled()) == ([False], collects)
    finally:
        gc.enable()
