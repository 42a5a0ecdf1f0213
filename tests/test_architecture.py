"""Imports point one way, and what is slow to import is imported late."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from distribution import SHARED, SLOWEST, company_of

from winnow.storage.objectives import OBJECTIVES
from winnow.tasks.spec.campaign import CampaignSpec

ROOT = Path(__file__).parent.parent

MAY_IMPORT = {
    "algorithms": {"winnow.algorithms", "numpy", "scipy"},
    "storage": {"winnow.storage", "sqlalchemy", "alembic", "psycopg"},
    "tasks": {
        "winnow.tasks", "winnow.algorithms", "winnow.storage",
        "anyio", "httpx", "jinja2", "numpy", "opentelemetry", "orjson", "pandas", "psutil", "pyarrow",
        "pydantic", "pydantic_core", "ray", "regex", "sqlalchemy", "threadpoolctl", "tokenizers", "torch",
        "transformers",
        "PIL", "vllm", "yaml", "datasets", "huggingface_hub", "inspect_ai", "jsonschema",
        "jsonschema_specifications", "litellm", "math_verify", "rouge_score", "sacrebleu",
    },
    "flows": {
        "winnow", "winnow.flows", "winnow.tasks", "winnow.algorithms", "winnow.storage", "winnow.infra",
        "apprise", "choreographer", "httpx", "jinja2", "kaleido", "markdown_it", "markupsafe", "matplotlib",
        "mlflow", "numpy", "pandas", "plotly", "prefect", "prometheus_client", "psutil", "pyarrow",
        "pythonjsonlogger", "rich", "sqlalchemy", "starlette", "streamlit", "typer", "uvicorn", "wandb",
        "yaml",
    },
    "infra": {"winnow.infra", "tokenizers", "torch", "transformers"},
}  # fmt: skip

ONE_FILE_ONLY = {
    "apprise": "flows/notify/sender.py",
    "inspect_ai": "tasks/harness/inspect/child.py",
    "litellm": "tasks/engines/litellm/worker.py",
    "vllm": "tasks/engines/vllm/loaded_model.py",
}

FEW_FOLDERS_ONLY = {
    "datasets": ("tasks/data", "tasks/harness"),
    "jsonschema": ("tasks/judges/isolated",),
    "mlflow": ("flows/reports/export/trackers",),
    "markdown_it": ("flows/reports/dashboard",),
    "math_verify": ("tasks/judges/isolated",),
    "ray": ("tasks/engines/ray",),
    "rouge_score": ("tasks/judges/isolated",),
    "sacrebleu": ("tasks/judges/isolated",),
    "starlette": ("flows/reports/dashboard",),
    "streamlit": ("flows/reports/dashboard",),
    "wandb": ("flows/reports/export/trackers",),
}
"""Extras: whoever does without them can still use everything outside of their folders."""


@cache
def imported(path):
    """Top-level names of all imports of a file, those in functions too; of ours the folder as well."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {shortened(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            names.add(shortened(node.module))
    return names


def shortened(name):
    top, *rest = name.split(".")
    return ".".join([top, *rest[:1]]) if top == "winnow" else top


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_point_one_way(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths, f"{folder} is empty: the test would pass without looking"
    strays = {
        str(path.relative_to(ROOT)): imported(path) - MAY_IMPORT[folder] - sys.stdlib_module_names
        for path in paths
    }
    assert not {path: names for path, names in strays.items() if names}


@pytest.mark.parametrize("package", ONE_FILE_ONLY)
def test_is_imported_in_one_file_only(package):
    paths = [path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py")]
    importers = [str(path.relative_to(ROOT)) for path in paths if package in imported(path)]
    assert importers == [ONE_FILE_ONLY[package]]


@pytest.mark.parametrize("package", FEW_FOLDERS_ONLY)
def test_is_imported_in_few_folders_only(package):
    paths = [path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py")]
    importers = [path.relative_to(ROOT) for path in paths if package in imported(path)]
    assert importers
    folders = FEW_FOLDERS_ONLY[package]
    assert [path for path in importers if not any(map(path.is_relative_to, folders))] == []


LEVELS = {
    "algorithms": (
        "state", "bounds low_rank", "best_mean best_duel certify route", "champion gate papers new_examples",
    ),
    "storage": (
        "errors text json_types objectives", "columns", "engine", "models", "records",
        "queries migrations", "admin",
    ),
    "tasks": (
        "text", "errors", "dotted_names", "plugins", "processes", "engines", "spec", "data",
        "candidates finished_runs harness",
        "embedding", "judges", "campaign", "rounds", "objectives", "answer setup", "queries simulation",
    ),
    "flows": (
        "exit_codes", "reports", "notify prefect_support simulate", "run", "api schedule", "cli", "main",
    ),
}  # fmt: skip
"""Folders, and files beside them, from the lowest level to the highest: each imports only those of lower
levels, and nothing of another one of its own level."""


@pytest.mark.parametrize("top", LEVELS)
def test_no_folder_imports_upward(top):
    level = {folder: number for number, some in enumerate(LEVELS[top]) for folder in some.split()}
    folders = {path.parent.name for path in (ROOT / top).glob("*/__init__.py")}
    assert folders <= {*level}
    modules = {module_name(path): path for path in (ROOT / top).rglob("*.py")}
    edges = [(name, other) for name, path in modules.items() for other in imported_modules(path, modules)]
    upward = [
        f"{name} imports {other}"
        for name, other in edges
        if (one := folder_of(name)) != (two := folder_of(other))
        and {one, two} <= {*level}
        and level[one] <= level[two]
    ]
    assert edges
    assert upward == []


def test_the_page_on_the_architecture_has_the_levels_of_tasks():
    page = (ROOT / "docs" / "architecture.md").read_text()
    (block,) = re.findall(r"^    (text < .*?)\n\n", page, re.DOTALL | re.MULTILINE)
    shown = [" ".join(level.split(",")).split() for level in block.split("<")]
    assert shown == [level.split() for level in LEVELS["tasks"]]


def folder_of(module):
    """The folder of a module inside `winnow.tasks` and the like, such as "engines"."""
    return [*module.split("."), ""][2]


STARTS_PROCESSES = {
    "storage/engine/write_lock.py",  # below the folder of the others
    "tasks/judges/code/scoring_process.py",  # a fork of a worker for each output, which has imported a task
    "tasks/processes/child_process.py",
    "tasks/processes/fork_server_side.py",
}


def test_processes_are_started_in_one_place():
    starting = {"Popen", "run", "call", "check_call", "check_output", "fork", "posix_spawn", "system"}
    found = {
        str(path.relative_to(ROOT))
        for folder in MAY_IMPORT
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[0] in ("os", "subprocess")
        and ast.unparse(node.func).split(".")[-1] in starting
    }
    assert found == STARTS_PROCESSES


SATELLITES = (
    "algorithms.papers", "algorithms.certify", "algorithms.route",
    "tasks.engines.ray", "tasks.engines.litellm",
    "tasks.judges.code", "tasks.harness",
    "tasks.judges.rules.inspect", "tasks.judges.pointwise.inspect_graded",
    "tasks.objectives.certify", "tasks.objectives.route",
    "tasks.answer.sentences.certify", "tasks.answer.sentences.route",
    "tasks.simulation", "flows.simulate", "flows.reports.dashboard", "flows.reports.export.trackers",
    "tasks.finished_runs", "flows.cli.imports",
    "flows.api.labels", "flows.api.plans", "flows.api.simulations",
    "flows.cli.plan", "flows.cli.simulate", "flows.cli.routes", "flows.cli.labels",
    "flows.cli.results.dashboards",
    "flows.reports.terminal.certify", "flows.reports.terminal.route",
    "flows.reports.html.objectives.certify", "flows.reports.html.objectives.route",
)  # fmt: skip
"""Packages and modules that the core finds through registries, by their addresses, and never imports."""


def test_the_core_imports_no_satellite():
    modules = {module_name(path): path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py")}
    found = {satellite_of(name) for name in modules} - {None}
    assert found == {*SATELLITES}
    importers = {
        name.removeprefix("winnow.")
        for name, path in modules.items()
        if satellite_of(name) is None
        and any(map(satellite_of, imported_modules(path, modules, at_run_time=True)))
    }
    assert importers == set()


def test_a_file_of_a_satellite_is_known_as_one():
    assert satellite_of("winnow.algorithms.route.policies") == "algorithms.route"
    assert satellite_of("winnow.flows.cli.plan") == "flows.cli.plan"
    assert satellite_of("winnow.algorithms.champion.selector") is None


def satellite_of(module):
    """The satellite that a module is or belongs to; None in the core."""
    inside = f"{module.removeprefix('winnow.')}."
    return next((each for each in SATELLITES if inside.startswith(f"{each}.")), None)


def test_no_file_imports_itself_on_a_way_round():
    # Imports inside functions, and those for type checkers, count as well.
    modules = {module_name(path): path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py")}
    graph = {name: imported_modules(path, modules) - {name} for name, path in modules.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the way


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(["winnow", *(parts[:-1] if parts[-1] == "__init__" else parts)])


def imported_modules(path, modules, *, at_run_time=False):
    """Those of the project's modules that are imported anywhere in a file, or anywhere but for types."""
    found = set()
    tree = ast.parse(path.read_text())
    for_types = {
        each
        for block in ast.walk(tree)
        if at_run_time and isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for each in block.body
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & set(modules)


IMPORT_EVERYTHING = """
import gc, importlib, pkgutil, sys
from pathlib import Path
import winnow
gc.disable()  # it would take a third of the time
for each in pkgutil.walk_packages(winnow.__path__, "winnow."):
    if not (each.name.endswith(SCRIPTS) or ".versions." in each.name):
        importlib.import_module(each.name)
paths = [getattr(each, "__file__", None) for each in list(sys.modules.values())]
files = [Path(path).resolve() for path in paths if path]
ours = [file for file in files if file.is_relative_to(ROOT) and ".venv" not in file.parts]
print(len(ours), len(set(ours)))
"""
SCRIPTS = (".migrations.env", ".engines.vllm.worker", ".dashboard.app")
"""Modules that are run, by Alembic, Streamlit or as a process, and not imported."""


@pytest.mark.slow
def test_every_module_has_one_name():
    # In a checkout the folders lie beside the package as well: what imports them from there has them twice.
    code = f"from pathlib import Path; ROOT, SCRIPTS = Path({str(ROOT)!r}), {SCRIPTS!r}{IMPORT_EVERYTHING}"
    command = [sys.executable, "-W", "ignore", "-c", code]
    modules, files = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout.split()[-2:]
    assert int(modules) > 300
    assert modules == files


def test_the_suite_begins_with_files_that_there_are_and_companies_have_several():
    files = list((ROOT / "tests").rglob("test_*.py"))
    assert {path.stem for path in files} >= set(SLOWEST)
    sizes = Counter(company_of(path.relative_to(ROOT).as_posix()) for path in files)
    assert all(sizes[company] > 3 for company in SHARED.values())
    assert all(any(word in path.read_text() for path in files) for word in SHARED)


@pytest.mark.parametrize("name", ["create_selector", "Router", "open", "select", "__version__"])
def test_what_the_package_offers_is_loaded_when_it_is_used(name):
    code = f"import sys, winnow; light = 'numpy' not in sys.modules; winnow.{name}; print(light)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"


def test_a_name_that_the_package_lacks_is_said_as_of_any_module():
    import winnow

    assert set(dir(winnow)) == set(winnow.__all__)
    with pytest.raises(AttributeError, match="module 'winnow' has no attribute 'nothing'"):
        winnow.nothing  # noqa: B018


def test_no_code_lives_outside_the_known_folders():
    folders = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("[a-z]*/**/*.py")}
    assert folders == {*MAY_IMPORT, "examples", "tests"}


LIGHT = {
    "winnow.flows.cli": {"sqlalchemy", "numpy", "pydantic", "yaml", "jinja2", "httpx", "prefect", "torch"},
    "winnow.flows.cli.results.status, winnow.flows.reports.summary": {
        "numpy", "pydantic", "jinja2", "yaml", "httpx", "scipy", "pandas", "prefect", "alembic", "torch",
        "transformers", "vllm",
    },
    "winnow.flows.run.launch, winnow.tasks.setup.load": {
        "httpx", "pandas", "pyarrow", "prefect", "alembic", "torch", "transformers", "vllm",
        "opentelemetry", "rich.live", "scipy", "winnow.tasks.campaign.session",
        "winnow.tasks.engines.vllm.engine", "winnow.tasks.objectives.certify.objective",
        "winnow.tasks.objectives.route.objective",
    },
}  # fmt: skip
"""Modules of commands that have to answer at once -- help, status, a run that is decided already -- and what
each of them does without."""


@pytest.mark.parametrize("modules", LIGHT)
def test_what_has_to_answer_at_once_imports_nothing_that_it_does_not_need(modules):
    code = f"import sys, {modules}; print(sorted({LIGHT[modules]!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("command", [["--help"], ["status", "--help"], ["selectors"], ["judges"]])
def test_a_quick_command_imports_nothing_slow(command):
    code = (
        "import sys; from winnow.flows.main import main; sys.argv = ['winnow', *sys.argv[1:]]\n"
        "try: main()\n"
        "finally: print(sorted({'httpx', 'torch', 'vllm', 'prefect', 'transformers', 'pandas'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert result.stderr.strip() == "[]"


NAMES_OBJECTIVES = ("storage/objectives.py", "storage/migrations/", "algorithms/registry.py")
"""The registries of objectives and of their selectors, and what is stored."""


def test_no_objective_is_named_outside_its_package():
    found = []
    for folder in MAY_IMPORT:
        for path in (ROOT / folder).rglob("*.py"):
            place = str(path.relative_to(ROOT))
            own = {f"tasks/objectives/{each.replace('-', '_')}/": each for each in OBJECTIVES}
            allowed = {each for start, each in own.items() if place.startswith(start)}
            if not place.startswith(NAMES_OBJECTIVES):
                found += [f"{place}: {each}" for each in named_objectives(path) if each not in allowed]
    assert found == ["flows/cli/__init__.py: route"]  # a command of this name


def named_objectives(path):
    """The objectives that a file names; but for comparisons, not `certify` where it may be the file's key."""
    tree = ast.parse(path.read_text())
    compared = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Compare, ast.MatchValue))
        for part in ast.walk(node)
    }
    is_key = set(CampaignSpec.model_fields)
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in OBJECTIVES
        and (node.value not in is_key or id(node) in compared)
    ]


def test_what_names_an_objective_is_found(tmp_path):
    path = tmp_path / "named.py"
    path.write_text(
        "if a == 'certify' or b in ('route', 'x'): {'best-duel': a['certify']}\n"
        "match a:\n    case 'best-mean': pass\n"
    )
    assert sorted(named_objectives(path)) == ["best-duel", "best-mean", "certify", "route"]
