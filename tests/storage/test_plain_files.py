"""What is no plain file has one sentence, at once, wherever a user or a campaign's file names it."""

import os
import socket
from pathlib import Path

import pytest

from winnow.flows.run.comparing import _prompts
from winnow.storage.admin.schema import ensure_schema, reading
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageError
from winnow.storage.plain_files import make_folder, open_plain, read_text, refuse_link_elsewhere
from winnow.tasks.answer.expected_engines import _own_precision
from winnow.tasks.candidates.model_refs import _template
from winnow.tasks.data.dataset_files import read_rows
from winnow.tasks.data.file_digests import file_digest
from winnow.tasks.data.score_tables import read_table
from winnow.tasks.engines.chat import hides_thoughts, own_template
from winnow.tasks.errors import WinnowError
from winnow.tasks.judges.pairwise.pair_template import _source
from winnow.tasks.objectives.route.router import Router
from winnow.tasks.setup.yaml_file import read_spec_file

KINDS = {"pipe": "a named pipe", "socket": "a socket", "device": "a device", "folder": "a folder"}


@pytest.fixture(params=KINDS)
def other_kind(request, tmp_path, monkeypatch):
    """Puts something that is no plain file at a path, and says what the sentence has to name."""
    monkeypatch.chdir(tmp_path)

    def make(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))  # relative: the name of a socket is short
        elif request.param == "device":
            path.symlink_to("/dev/zero")
        else:
            path.mkdir()
        return path

    make.kind = KINDS[request.param]
    return make


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("a", open_plain),
        ("a", read_text),
        ("a", file_digest),
        ("c.yaml", read_spec_file),
        ("d.jsonl", lambda path: list(read_rows(path))),
        ("d.csv", lambda path: list(read_rows(path))),
        ("d.jsonl.gz", lambda path: list(read_rows(path))),
        ("d.parquet", lambda path: list(read_rows(path))),
        ("t.jinja", lambda path: _template(str(path), "models[0]")),
        ("t.j2", lambda path: _source(str(path))),
        ("p.txt", lambda path: _prompts([f"@{path}"])),
        ("s.npz", lambda path: read_table(str(path), "scores")),
        ("s.csv", lambda path: read_table(str(path), "scores")),
        ("policy/policy.json", lambda path: Router.load(path.parent)),
        ("w.db", lambda path: reading(f"sqlite:///{path}").__enter__()),
    ],
)
def test_it_is_named_and_never_waited_for(other_kind, name, read):
    path = other_kind(Path(name))
    with pytest.raises((OSError, WinnowError, StorageError)) as refused:
        read(path)
    assert other_kind.kind in str(refused.value)


def test_of_the_files_of_a_checkpoint_nothing_is_read_from_such(other_kind, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "chat_template.jinja"):
        other_kind(Path("model") / name)
    folder = Path("model")
    assert not hides_thoughts(folder)
    assert own_template(folder) is None
    assert _own_precision(folder) == "auto"


@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
def test_nothing_of_the_kind_lies_beside_a_database_that_is_opened(other_kind, end):
    path = Path("w.db")
    path.touch()
    other_kind(Path(f"w.db{end}"))
    with pytest.raises(StorageError, match=f"{other_kind.kind}|is a link"), reading(f"sqlite:///{path}"):
        pass


def test_texts_have_the_line_ends_of_text_files(tmp_path):
    (tmp_path / "a").write_bytes("\u00e9\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a") == (tmp_path / "a").read_text("utf-8") == "\u00e9\nb\nc\n"
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(tmp_path / "a")


def test_a_folder_to_write_into_is_made_through_no_link_to_another_folder(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "a" / "near").symlink_to("b")
    make_folder(tmp_path / "a" / "near")
    for target in (tmp_path, tmp_path / "not there"):
        (link := tmp_path / "a" / "link").symlink_to(target)
        with pytest.raises(OSError, match=f"{link} is a link to {target} in another folder; use that"):
            make_folder(link)
        link.unlink()
    assert not (tmp_path / "not there").exists()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Stands in a working folder whose `out` is a link to a folder elsewhere, which it returns."""
    (working := tmp_path / "above" / "working").mkdir(parents=True)
    (target := tmp_path / "elsewhere").mkdir()
    (working / "out").symlink_to(target)
    monkeypatch.chdir(working)
    return target


@pytest.mark.parametrize(
    "path", ["out", "out/x", "out/a/b/x", "./out/x", "out/../x", "../working/out/x", "new/../out/x", "near/x"]
)
def test_no_part_of_a_relative_path_is_a_link_to_another_folder(elsewhere, path):
    Path("a").mkdir()
    Path("near").symlink_to("a")
    Path("a/x").symlink_to(elsewhere / "not there")
    with pytest.raises(OSError, match=r"is a link to .*elsewhere.* in another folder; use that"):
        refuse_link_elsewhere(path)


def test_links_that_are_the_users_own_or_stay_in_their_folder_are_allowed(elsewhere, tmp_path, monkeypatch):
    Path("a/b").mkdir(parents=True)
    Path("near").symlink_to("a")
    Path("a/loop").symlink_to("loop")
    (tmp_path / "above" / "beside").symlink_to(elsewhere)
    (tmp_path / "linked").symlink_to(Path.cwd())
    for path in ("near/b/x", "x", "a/loop", "../beside/x", Path.cwd() / "out" / "x", elsewhere / "x"):
        refuse_link_elsewhere(path)
    monkeypatch.chdir(tmp_path / "linked")
    refuse_link_elsewhere("near/x")


def made(url):
    database = open_database(url)
    try:
        ensure_schema(database)
    finally:
        database.close()


def test_a_database_is_made_through_no_link_to_another_folder(elsewhere):
    with pytest.raises(StorageError, match=r"out is a link to .* in another folder"):
        made("sqlite:///out/q.db")
    assert list(elsewhere.iterdir()) == []
    made(f"sqlite:///{elsewhere}/q.db")
    made("sqlite:///out/q.db")  # one that is there is opened


def test_a_name_with_nul_is_named_as_what_cannot_be_opened(tmp_path):
    with pytest.raises(OSError, match="contains the character NUL"):
        open_plain(tmp_path / "a\0b")
