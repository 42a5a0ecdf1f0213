"""What is built and installed: one name, which works in a folder that has names of its own."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
OF_A_USER = ("tasks.py", "algorithms.py", "infra.py", "flows/__init__.py", "storage/__init__.py")


def build(root, folder):
    """The sdist of a tree, and the wheel, in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def names_in(wheel):
    with ZipFile(wheel) as archive:
        return sorted(archive.namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A folder with the package alone, as pip unpacks it."""
    folder = tmp_path_factory.mktemp("site-packages")
    with ZipFile(built[1]) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def run(installed, tmp_path):
    """Runs Python in a user's folder that has modules with the names of ours, and sees the wheel alone."""
    for name in OF_A_USER:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise SystemExit('a module of the user')\n")
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def python(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    return python


def test_the_wheel_has_one_name_and_all_that_is_read_as_data(built):
    names = names_in(built[1])
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"winnow"}
    folders = ("algorithms", "examples", "flows", "infra/demo", "storage", "tasks")
    ours = {
        f"winnow/{path.relative_to(ROOT)}"
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours - set(names) == set()
    assert "winnow/py.typed" in names  # where type checkers look whether annotations are meant for them
    assert not [name for name in names if name.startswith(("winnow/infra/locks", "winnow/infra/Docker"))]


def test_the_wheel_from_the_sdist_is_that_from_the_tree(built, tmp_path):
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    [tree] = [path for path in tmp_path.iterdir() if path.is_dir()]
    _, wheel = build(tree, tmp_path / "dist")
    assert names_in(wheel) == names_in(built[1])


def test_it_works_in_a_folder_that_holds_modules_of_the_same_names(run, installed):
    assert run("-c", "import winnow; print(winnow.__file__)").strip() == f"{installed}/winnow/__init__.py"
    assert "champion" in run("-m", "winnow.flows.main", "selectors")
    run("-m", "winnow.flows.main", "init", "campaign.yaml")
    program = (
        "import numpy as np, winnow\n"
        "selector = winnow.create_selector('champion', n_arms=3, n_examples=40, delta=0.05)\n"
        "scores, number = np.repeat([[0.9], [0.1], [0.2]], 40, axis=1), 0\n"
        "while not selector.decision().stop:\n"
        "    batch, number = selector.ask(np.random.default_rng([7, number])), number + 1\n"
        "    selector.tell(batch, scores[batch.arms, batch.examples])\n"
        "print(selector.decision().best, selector.decision().claim.kind)"
    )
    assert run("-c", program).split() == ["0", "proven"]


def test_a_light_import(run):
    heavy = "{'numpy', 'torch', 'prefect', 'vllm', 'pandas'}"
    assert run("-c", f"import sys, winnow; print({heavy} & set(sys.modules))").strip() == "set()"
