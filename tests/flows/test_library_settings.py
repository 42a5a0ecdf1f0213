"""Libraries read no settings from the working folder, nor from those above it, which may be strangers'."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import winnow
from faulty_server import faulty_server

from winnow.storage.engine.database import absolute_url
from winnow.tasks.engines.litellm.engine import FORCED
from winnow.tasks.processes.child_process import worker_environment

CAPTURED = {"capture_output": True, "text": True}
BAD_URL = "http://192.0.2.1:4200/api"
LOGGING = "version: 1\nfilters: {x: {(): subprocess.Popen, args: [[touch, PWNED]]}}\n"
PROFILES = (
    f'active = "a"\n[profiles.a]\nPREFECT_API_URL = "{BAD_URL}"\nPREFECT_LOGGING_CONFIG_PATH = "l.yml"\n'
)
TOML = f'profiles_path = "profiles.toml"\n[api]\nurl = "{BAD_URL}"\n[logging]\nconfig_path = "l.yml"\n'
SETTINGS = {
    ".env": f'PREFECT_API_URL="{BAD_URL}"\nPREFECT_PROFILES_PATH=profiles.toml\nOPENAI_API_KEY=theirs\n',
    "prefect.toml": TOML,
    "pyproject.toml": TOML.replace("profiles_path", "[tool.prefect]\nprofiles_path")
    .replace("\n[", "\n[tool.prefect.")
    .replace("[tool.prefect.tool", "[tool"),
    "profiles.toml": PROFILES,
    "l.yml": LOGGING,
    "logging.yml": LOGGING,
    ".prefect/profiles.toml": PROFILES,
    ".winnow/prefect/profiles.toml": PROFILES,
    ".winnow/prefect/logging.yml": LOGGING,
    ".winnow/cache/matplotlib/matplotlibrc": "lines.linewidth: 77\n",
    "matplotlibrc": "lines.linewidth: 77\n",
    ".streamlit/config.toml": '[theme]\nprimaryColor = "#010203"\n[server]\nport = 1\nenableCORS = true\n',
    ".streamlit/secrets.toml": 'WINNOW_VIEW_ALLOW_LABELS = "1"\nWINNOW_STORAGE = "sqlite:///theirs.db"\n',
    ".streamlit/credentials.toml": '[general]\nemail = "theirs"\n',
    "wandb/settings": f"[default]\nbase_url = {BAD_URL}\nentity = theirs\n",
    ".wandb/settings": f"[default]\nbase_url = {BAD_URL}\n",
    ".numba_config.yaml": "cache_dir: theirs\ndisable_jit: 1\n",
    "MLproject": "name: theirs\n",
    "ray.yaml": "cluster_name: theirs\n",
    "litellm_config.yaml": "model_list: []\n",
    "config.yaml": "theirs: 1\n",
    "vllm.yaml": "theirs: 1\n",
    "setup.cfg": "[theirs]\n",
    "alembic.ini": "[alembic]\nscript_location = theirs\n",
    ".netrc": "machine api.wandb.ai login user password theirs\n",
}
"""Files in which some library, or some command of it, keeps settings."""

MODULES = (
    "json", "pickle", "runpy", "multiprocessing", "socket", "typing", "encodings", "logging", "numpy",
    "torch", "prefect", "streamlit", "ray", "transformers", "vllm", "litellm", "mlflow", "wandb", "winnow",
    "flows", "sitecustomize", "usercustomize",
)  # fmt: skip
"""Modules that a process with the working folder on its path would import from there."""

WATCHED = """
import os, sys
opened, here = [], os.path.realpath(os.getcwd())
def watch(event, args):
    if event == "open" and isinstance(args[0], str | bytes):
        path = os.path.abspath(os.fsdecode(args[0]))
        if path.startswith(os.path.dirname(here) + os.sep) and path != here:
            opened.append(path)
sys.addaudithook(watch)
{program}
print(opened)
"""

PREFECT = """
from winnow.flows.prefect_support.environment import settle_environment
settle_environment()
import prefect, prefect.flow_engine
from prefect.settings import PREFECT_API_URL, Settings, temporary_settings
with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
    found = Settings()
assert found.api.url is None, found.api.url
assert found.profiles_path.is_relative_to(os.environ["XDG_STATE_HOME"]), found.profiles_path
"""
PREFECT_ON_A_WORKER = """
os.chdir("/")  # a worker starts its runs in a folder of their own
os.environ["WINNOW_WORKING_FOLDER"] = here
import prefect
from prefect.settings import Settings
import winnow.flows.schedule.flows
assert os.getcwd() == here
assert Settings().api.url is None
"""
STREAMLIT = """
from winnow.flows.reports.dashboard.server import leave_folder
leave_folder()
import streamlit
from streamlit import config
config.get_config_options(force_reparse=True)
assert config.get_option("theme.primaryColor") is None
try:
    dict(streamlit.secrets)
except FileNotFoundError:
    pass
assert "WINNOW_VIEW_ALLOW_LABELS" not in os.environ
"""
SETTLED = "from winnow.tasks.plugins.library_settings import settle_libraries\nsettle_libraries()\n"
WANDB = (
    SETTLED
    + """
import wandb
settings = wandb.Settings()
settings.update_from_system_settings()
assert "192.0.2.1" not in settings.base_url
"""
)
MATPLOTLIB = """
from winnow.flows.simulate.plots import empty_figure
empty_figure((1, 1))
import matplotlib
assert matplotlib.rcParams["lines.linewidth"] != 77
"""
NUMBA = (
    SETTLED
    + """
import numba.core.config
numba.core.config.reload_config()
assert not numba.core.config.DISABLE_JIT
assert numba.core.config.CACHE_DIR != "theirs"
"""
)
LITELLM = (
    f"os.environ.update({FORCED!r})\n"
    + """
import litellm
assert os.environ.get("OPENAI_API_KEY") != "theirs"
"""
)

PROGRAMS = {
    "prefect": PREFECT,
    "prefect on a worker": PREFECT_ON_A_WORKER,
    "streamlit": STREAMLIT,
    "wandb": WANDB,
    "matplotlib": MATPLOTLIB,
    "numba": NUMBA,
    "litellm": LITELLM,
    "mlflow": SETTLED + "import mlflow, mlflow.tracking\nfrom mlflow import MlflowClient\n",
    "ray": SETTLED + "import ray\n",
    "transformers": SETTLED + "import transformers\nfrom transformers import AutoConfig\n",
    "vllm": SETTLED + "import vllm.envs, vllm.config\n",
}


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """A stranger's folder within another one, each with every file that some library may read."""
    for name in [name for name in os.environ if name.startswith(("PREFECT", "WANDB", "MPL", "NUMBA"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # an empty part of it is the working folder
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    (tmp_path / "home").mkdir()
    folder = tmp_path / "strange" / "repo"
    for place in (folder, folder.parent):
        for name, text in SETTINGS.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text.replace("PWNED", str(tmp_path / "pwned")))
        for name in MODULES:
            code = f"open({str(tmp_path / 'pwned')!r}, 'a').write({name!r} + '\\n')\nraise ImportError\n"
            (place / f"{name}.py").write_text(code)
    yield folder
    assert not (tmp_path / "pwned").exists(), (tmp_path / "pwned").read_text()


@pytest.mark.parametrize("library", PROGRAMS)
def test_a_library_opens_no_file_of_the_folder_or_above_it(strange, library):
    code = WATCHED.format(program=PROGRAMS[library])
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=strange, **CAPTURED)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["[]"]), done.stdout + done.stderr


def test_the_users_own_settings_stay(strange, tmp_path):
    own = tmp_path / "home" / ".prefect"
    own.mkdir()
    (own / "profiles.toml").write_text(
        'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://mine/api"\n'
    )
    code = PREFECT.partition("with temp")[0] + "print(Settings().api.url)"
    for variables, url in (
        ({}, "http://mine/api"),
        ({"PREFECT_API_URL": "http://named/api"}, "http://named/api"),
    ):
        environment = {**os.environ, **variables}
        done = subprocess.run([sys.executable, "-P", "-c", code], cwd=strange, env=environment, **CAPTURED)
        assert done.stdout.strip() == url, done.stderr


def test_processes_of_a_simulation_import_nothing_from_the_folder(strange):
    (strange / "table.csv").write_text("candidate,e1,e2\na,1,0\nb,0,0\n")
    # The command itself: children of this process would not see what it sets.
    command = Path(sys.executable).with_name("winnow")
    more = ("--out", "out", "--seeds", "4", "--workers", "2", "--budgets", "0.5,1.0")
    simulate = [command, "simulate", "table.csv", "--selector", "row-mean", *more]
    done = subprocess.run(simulate, cwd=strange, **CAPTURED)
    assert done.returncode == 0, done.stderr


def test_ray_tells_its_workers_of_no_folder_to_import_from():
    from winnow.tasks.engines.ray.cluster import _job

    job = _job()
    job._py_driver_sys_path.extend([os.getcwd()])
    assert job._py_driver_sys_path == []


def test_a_campaign_is_run_and_what_prefect_kept_in_the_folder_is_named_once(strange, tmp_path):
    rows = "".join(f'{{"id": "e{i}", "input": "i", "target": "t"}}\n' for i in range(4))
    (strange / "d.jsonl").write_text(rows)
    with faulty_server() as server:
        (strange / "c.yaml").write_text(f"""\
name: c
objective: best-mean
models: [{{name: m, provider: openai, model: m, model_base_url: "{server.url}"}}]
prompts: [{{name: a, template: "{{{{ input }}}}"}}, {{name: b, template: "please {{{{ input }}}}"}}]
dataset: {{path: d.jsonl, fields: {{id: id, input: input, target: target}}}}
judge: {{type: exact}}
selector: {{name: row-mean}}
batch_size: 8
stopping: {{budget: 8}}
""")
        done = [winnow(strange, "run", "c.yaml", "--set", f"name=c{number}") for number in range(2)]
    assert {each.returncode for each in done} <= {0, 3}, done[0].stderr
    (home,) = (tmp_path / "home" / "state" / "winnow").glob("repo-*")
    said = f".winnow/prefect is no longer used: Prefect's data for this folder is in {home}/prefect"
    assert [said in each.stderr for each in done] == [True, False]
    assert (home / "prefect" / "prefect.db").exists()
    assert (home / "prefect").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("url", "absolute"),
    [
        ("sqlite:///winnow.db", "sqlite:///{here}/winnow.db"),
        ("sqlite:///a/b c.db", "sqlite:///{here}/a/b c.db"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
        ("postgresql+psycopg://u:p@h/x", "postgresql+psycopg://u:p@h/x"),
        ("no url", "no url"),
    ],
)
def test_a_url_for_a_process_elsewhere_names_the_same_database(url, absolute):
    assert absolute_url(url) == absolute.format(here=Path.cwd())


def test_torch_keeps_compiled_code_where_no_other_user_writes(tmp_path, monkeypatch):
    name = "TORCHINDUCTOR_CACHE_DIR"
    monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert worker_environment({}, {})[name] == f"{tmp_path}/winnow/torchinductor"
    monkeypatch.setenv(name, "/mine")
    assert worker_environment({}, {})[name] == "/mine"
    monkeypatch.delenv(name)
    code = SETTLED + "from torch._inductor.runtime.cache_dir_utils import cache_dir\nprint(cache_dir())"
    result = subprocess.run([sys.executable, "-c", code], **CAPTURED)
    assert result.stdout.strip() == f"{tmp_path}/winnow/torchinductor", result.stderr
