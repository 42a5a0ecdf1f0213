"""The files that are a plug-in's own, found without importing more than the plug-in itself."""

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import distribution

import pytest

from winnow.tasks.plugins.source_code import code_digests

FILES = {
    "acme/__init__.py": "from acme import settings\n",
    "acme/settings.py": "LIMIT = 3\n",
    "acme/judges/__init__.py": "",
    "acme/judges/length.py": """
import json, regex
from winnow.tasks.judges.protocol import Verdict
from . import words
from ..deep.sums import total as summed
import acme_beside
from typing import TYPE_CHECKING
import typing

if TYPE_CHECKING:
    import acme_types
elif typing.TYPE_CHECKING:
    from acme import unused
else:
    from acme import settings

class Length:
    def judge(self, sample):
        import acme.lazy
        from acme_elsewhere.sub import helper
""",
    "acme/judges/words.py": "from acme import _fast\n",
    f"acme/_fast{EXTENSION_SUFFIXES[0]}": "not really compiled",
    "acme/lazy.py": "raise RuntimeError('imported')\n",
    "acme/deep/sums.py": "total = sum\n",
    "acme/unused.py": "raise RuntimeError('imported')\n",
    "acme_types.py": "raise RuntimeError('imported')\n",
    "acme_beside.py": "def later():\n    import acme_nowhere\n",
    "acme_elsewhere/__init__.py": "raise RuntimeError('imported')\n",
    "acme_elsewhere/sub.py": "def helper(: broken\n",
    "site-packages/strange.py": "",
}
OWN = {
    *("acme", "acme.settings", "acme.judges", "acme.judges.length", "acme.judges.words", "acme._fast"),
    *("acme.lazy", "acme.deep.sums", "acme_beside", "acme_elsewhere", "acme_elsewhere.sub"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the plug-in's files are, beside those of others."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "acme" / "judges" / "words.py").write_text("")  # nobody can load the extension
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget()


def forget():
    """What another process would begin without."""
    for name in [each for each in sys.modules if each.partition(".")[0].startswith("acme")]:
        del sys.modules[name]


def digests(folder, *, module="acme.judges.length", files=""):
    """Of a plug-in as a process finds it that was started just now."""
    forget()
    # Beside the files that its record names: `importlib_metadata`, once anything has imported it, answers for
    # Python's own module as well, and leaves out what a record names and the folder lacks.
    info = folder / "site-packages" / "acme-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[winnow.judges]\nacme = {module}:Length\n")
    (info / "RECORD").write_text(files)
    [entry] = distribution("acme").entry_points
    return code_digests(entry)


def changed(before, after):
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_the_files_are_those_that_the_plug_in_may_import_and_that_are_its_own(folder):
    assert digests(folder).keys() == OWN - {"acme._fast"}
    assert not {"acme.lazy", "acme_elsewhere"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("acme/judges/length.py", "acme.judges.length"),
        ("acme/settings.py", "acme.settings"),
        ("acme/deep/sums.py", "acme.deep.sums"),
        ("acme/lazy.py", "acme.lazy"),
        ("acme_beside.py", "acme_beside"),
        ("acme_elsewhere/sub.py", "acme_elsewhere.sub"),
    ],
)
def test_an_edited_file_changes_its_digest_and_no_other(folder, file, module):
    before = digests(folder)
    with (folder / file).open("a") as text:
        text.write("# edited\n")
    assert changed(before, digests(folder)) == {module}


@pytest.mark.parametrize("file", ["acme/unused.py", "site-packages/strange.py"])
def test_a_file_that_it_does_not_import_is_none_of_its(folder, file):
    before = digests(folder)
    (folder / file).write_text("# edited\n")
    assert digests(folder) == before


def test_a_compiled_module_is_known_by_its_bytes(folder):
    (folder / "acme" / "lazy.py").write_text("from acme import _fast\n")
    before = digests(folder)
    assert before.keys() == OWN
    (folder / f"acme/_fast{EXTENSION_SUFFIXES[0]}").write_bytes(b"compiled anew")
    assert changed(before, digests(folder)) == {"acme._fast"}


@pytest.mark.parametrize("finder", ["importlib.metadata", "importlib_metadata"])
def test_of_installed_packages_only_its_own_distributions_count(folder, monkeypatch, finder):
    """In site-packages lies what is known by its release; a plug-in of another release is another one."""
    import_module(finder)  # the second takes over the search of the first, for as long as the process lasts
    (folder / "site-packages" / "plug.py").write_text("import strange, _plug_parts\n")
    (folder / "site-packages" / "_plug_parts.py").write_text("")
    assert digests(folder, module="plug").keys() == {"plug"}
    for name in ("plug", "strange", "_plug_parts"):
        monkeypatch.delitem(sys.modules, name)
    record = "plug.py,,\n_plug_parts.py,,\n"
    assert digests(folder, module="plug", files=record).keys() == {"plug", "_plug_parts"}


def test_a_process_that_runs_for_long_goes_on_with_what_it_imported(folder):
    before = digests(folder)
    (folder / "acme" / "settings.py").write_text("LIMIT = 4\n")
    [entry] = distribution("acme").entry_points
    assert code_digests(entry) == before != digests(folder)
