"""The installer where the package index lacks PyTorch's CPU build, as PyPI does: folders are the indexes."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from benchmarks.extra_sizes import closure, needed, size

ROOT = Path(__file__).parents[2]
PYTORCH = "https://download.pytorch.org/whl/cpu"
TORCH = "torch==9.8.7+cpu"
LOCK = f"beside==1.0\n{TORCH} ; sys_platform == 'linux'\n"


def index(folder, *packages):
    """An index of packages that hold nothing, as a folder."""
    folder.mkdir()
    for package in packages:
        name, _, version = package.partition("==")
        file = f"{name}-{version}-py3-none-any.whl"
        (folder / name).mkdir()
        with ZipFile(folder / name / file, "w") as wheel:
            about = f"{name}-{version}.dist-info"
            wheel.writestr(f"{name}.py", f"source = {folder.name!r}\n")
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
        (folder / name / "index.html").write_text(f'<a href="{file.replace("+", "%2B")}">{file}</a>')
    return folder.as_uri()


@pytest.fixture
def install(tmp_path):
    """Run the installer, with an index that pip is set to and one in the place of PyTorch's own."""
    infra = tmp_path / "infra"
    infra.mkdir()
    for name in ("install.sh", "torch.sh"):
        (infra / name).write_text((ROOT / "infra" / name).read_text())
    (tmp_path / "lock.txt").write_text(LOCK)
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    real = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", real], check=True)
    # An environment has no pip of its own, which would take seconds, and Winnow itself is no package here.
    python.write_text(
        '#!/bin/sh\ncase "$*" in *--editable*) exit 0 ;; esac\nshift 2\n'
        f'exec {sys.executable} -m pip --python {real}/bin/python "$@"\n'
    )
    python.chmod(0o755)

    def run(configured, pytorch, lock=LOCK, **variables):
        script = (ROOT / "infra" / "torch.sh").read_text()
        assert script.count(PYTORCH) == 1
        (infra / "torch.sh").write_text(script.replace(PYTORCH, pytorch))
        (tmp_path / "lock.txt").write_text(lock)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TORCH_"))}
        pip = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": configured,
            "PIP_NO_CACHE_DIR": "1",
        }
        return subprocess.run(
            ["sh", "infra/install.sh", "venv", "lock.txt"],
            cwd=tmp_path,
            env={**kept, **pip, "PYTHON": sys.executable, **variables},
            capture_output=True,
            text=True,
        )

    return run


def source(tmp_path, name="torch"):
    """The index that a package came from."""
    (module,) = (tmp_path / "environment").glob(f"lib/python*/site-packages/{name}.py")
    return module.read_text()


def test_a_build_that_the_package_index_lacks_comes_from_pytorchs_own_without_being_told(install, tmp_path):
    pypi = index(tmp_path / "pypi", "torch==9.8.7", "beside==1.0")
    done = install(pypi, index(tmp_path / "pytorch", TORCH, "beside==1.0"))
    assert (done.returncode, done.stderr) == (0, "")
    assert source(tmp_path) == "source = 'pytorch'\n"
    assert source(tmp_path, "beside") == "source = 'pypi'\n"  # of PyTorch's index nothing else is taken


def test_a_package_index_that_has_the_build_is_enough(install, tmp_path):
    done = install(index(tmp_path / "mirror", TORCH, "beside==1.0"), (tmp_path / "nowhere").as_uri())
    assert (done.returncode, done.stderr) == (0, "")
    assert source(tmp_path) == "source = 'mirror'\n"


def test_another_index_takes_the_place_of_pytorchs(install, tmp_path):
    pypi, own = index(tmp_path / "pypi", "beside==1.0"), index(tmp_path / "own", TORCH)
    done = install(pypi, index(tmp_path / "pytorch", TORCH), TORCH_INDEX=own)
    assert (done.returncode, source(tmp_path)) == (0, "source = 'own'\n")


def test_where_none_has_the_build_that_is_said_with_the_remedy(install, tmp_path):
    nothing = index(tmp_path / "pypi", "beside==1.0")
    done = install(nothing, index(tmp_path / "pytorch", "torch==9.8.7"))
    assert done.returncode == 1
    said = f"install: {TORCH} is neither in the package index that pip is set to nor in file://"
    assert said in done.stderr
    assert "TORCH_INDEX=<URL of an index of PyTorch's CPU wheels>" in done.stderr


def test_a_build_for_cuda_is_asked_of_the_package_index_alone(install, tmp_path):
    pypi = index(tmp_path / "pypi", "torch==9.8.7", "beside==1.0")
    done = install(pypi, "http://127.0.0.1:9/never", lock="beside==1.0\ntorch==9.8.7\n")
    assert (done.returncode, source(tmp_path)) == (0, "source = 'pypi'\n")


def test_the_wheel_is_tried_with_the_same_build():
    script = (ROOT / "infra" / "wheel.sh").read_text()
    assert '. "$(dirname "$0")/torch.sh"' in script
    assert "install_torch " in script


def test_the_page_has_the_size_of_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "install.md").read_text()
    rows = [row.split("|")[1:-1] for row in re.findall(r"^\| `\w+`.*$", page, re.MULTILINE)]
    named = {name.strip(" `"): (packages.strip(), size.strip()) for name, _, packages, size in rows}
    assert sorted(named) == sorted(extras)
    assert all(
        each == ("not measured", "not measured") or "".join(each)[0].isdigit() for each in named.values()
    )


def test_sizes_are_those_of_all_packages_that_an_extra_needs():
    ours = distribution("winnow-llm")
    base, report = (closure(needed(ours, extras)) for extras in ([], ["report"]))
    assert {"plotly", "narwhals"} <= report.keys() - base.keys()
    assert {"numpy", "pandas"} <= base.keys() & report.keys()
    assert "torch" not in report
    assert 10**6 < size(base["pandas"]) < 10**9


def test_the_recipes_for_cpus_name_the_index_that_make_uses():
    page = (ROOT / "docs" / "install.md").read_text()
    assert f"pip install torch --index-url {PYTORCH}\n" in page
    assert "uv pip install --torch-backend cpu '.[local,report]'\n" in page
