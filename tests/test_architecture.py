"""Imports point one way, and what is slow to import is imported late."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT = {
    "algorithms": {"algorithms", "numpy", "scipy", "torch"},
    "storage": {"storage", "sqlalchemy", "alembic", "psycopg"},
    "tasks": {
        "tasks", "algorithms", "storage",
        "anyio", "httpx", "jinja2", "numpy", "pandas", "psutil", "pyarrow", "pydantic", "pydantic_core",
        "ray", "regex", "sqlalchemy", "tokenizers", "torch", "transformers", "vllm", "yaml",
    },
    "flows": {
        "flows", "tasks", "algorithms", "storage", "infra",
        "choreographer", "httpx", "jinja2", "kaleido", "markupsafe", "matplotlib", "numpy", "pandas",
        "plotly", "prefect", "prometheus_client", "psutil", "pyarrow", "pythonjsonlogger", "rich",
        "sqlalchemy", "starlette", "streamlit", "typer", "uvicorn", "yaml",
    },
    "infra": {"infra", "tokenizers", "torch", "transformers"},
}  # fmt: skip

ONE_FILE_ONLY = {"vllm": "tasks/engines/vllm_worker.py"}

ONE_FOLDER_ONLY = {
    "ray": "tasks/engines/on_ray",
    "starlette": "flows/dashboard",
    "streamlit": "flows/dashboard",
}
"""Extras: whoever does without them can still use everything outside of their folders."""


def imported(path):
    """Top-level names of all imports of a file, those inside functions included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            names.add(node.module.partition(".")[0])
    return names


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


@pytest.mark.parametrize("package", ONE_FOLDER_ONLY)
def test_is_imported_in_one_folder_only(package):
    paths = [path for folder in MAY_IMPORT for path in (ROOT / folder).rglob("*.py")]
    importers = {str(path.parent.relative_to(ROOT)) for path in paths if package in imported(path)}
    assert importers == {ONE_FOLDER_ONLY[package]}


def test_no_code_lives_outside_the_known_folders():
    folders = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("[a-z]*/**/*.py")}
    assert folders == {*MAY_IMPORT, "tests"}


@pytest.mark.parametrize("command", [["--help"], ["status", "--help"], ["selectors"], ["judges"]])
def test_a_quick_command_imports_nothing_slow(command):
    code = (
        "import sys; from flows.main import main; sys.argv = ['winnow', *sys.argv[1:]]\n"
        "try: main()\n"
        "finally: print(sorted({'httpx', 'torch', 'vllm', 'prefect', 'transformers', 'pandas'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert result.stderr.strip() == "[]"
