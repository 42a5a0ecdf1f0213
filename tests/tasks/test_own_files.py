"""What Winnow writes unasked goes to files of its own: no link in their place leads it elsewhere."""

import os
import struct

import pytest
from stored_campaigns import new_database

from winnow.flows.cli.start.demo import demo
from winnow.flows.reports.export.trackers.mlflow_run import _require_no_links
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageUnavailable
from winnow.tasks.errors import SpecError, WinnowError
from winnow.tasks.plugins.entry_points import PluginLog
from winnow.tasks.plugins.own_files import open_anew, open_to_append, settled_folder, write_whole
from winnow.tasks.processes.child_process import open_log


def writes(path, text):
    write_whole(path, text)


def begins_anew(path, text):
    with open_anew(path) as file:
        file.write(text.encode())


def appends(path, text):
    with open_to_append(path) as file:
        file.write(text.encode())


WAYS = pytest.mark.parametrize("write", [writes, begins_anew, appends])


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A working folder, beside which the user has a file and a folder."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").write_text("kept")
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    yield tmp_path / "repo"
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["kept"]
    assert (tmp_path / "mine" / "kept").read_text() == "kept"


@WAYS
def test_files_and_their_folders_are_made_and_written_again(there, write):
    path = there / "a" / "b" / "file"
    for place in (path, path.relative_to(there)):
        write(place, "one\n")
        write(place, "two\n")
    assert path.read_text().endswith("two\n")
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


@WAYS
def test_no_folder_on_the_way_may_be_a_link(there, write):
    for link, path in (
        (there / "a", there / "a" / "kept"),
        (there / "b" / "c", there / "b" / "c" / "new" / "x"),
    ):
        link.parent.mkdir(exist_ok=True)
        link.symlink_to("../mine" if link.parent == there else "../../mine")
        for place in (path, path.relative_to(there)):
            with pytest.raises(OSError, match=rf"{link.relative_to(there)} is a link, .* remove it"):
                write(place, "lost")


@pytest.mark.parametrize("to", ["../mine/kept", "../mine/new", "loop", "/dev/full"])
def test_a_link_in_the_place_of_a_file_is_replaced_or_refused(there, to):
    for write in (writes, begins_anew):
        (there / "loop").symlink_to(to)
        write(there / "loop", "mine")
        assert not (there / "loop").is_symlink()
        (there / "loop").unlink()
    (there / "loop").symlink_to(to)
    with pytest.raises(OSError, match="loop is a link"):
        appends(there / "loop", "lost")


def test_a_second_name_of_a_file_and_what_is_no_file_are_not_written_to(there):
    for write in (writes, begins_anew):
        os.link("../mine/kept", "second")
        write(there / "second", "mine")
        (there / "second").unlink()
    os.link("../mine/kept", "second")
    with pytest.raises(OSError, match="a second name elsewhere"):
        appends(there / "second", "lost")
    (there / "second").unlink()
    os.mkfifo("pipe")
    with pytest.raises(OSError, match="No such device"):  # and does not wait for a reader
        appends(there / "pipe", "lost")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="not a plain file"):
        appends(there / "pipe", "lost")
    os.close(reader)


def test_logs_of_engines_and_plugins_follow_no_link(there):
    (there / "logs").mkdir()
    (there / "logs" / "m.log").symlink_to("../../mine/kept")
    (there / "logs" / "c").symlink_to("../../mine")
    with pytest.raises(WinnowError, match=r"m\.log is a link, .* execution\.log_folder"):
        open_log(there / "logs" / "m.log")
    assert not PluginLog(there / "logs" / "c", "c").keeps("a sentence", "here", "a trace")


def test_links_in_a_log_folder_that_was_allowed_are_those_that_were_allowed(there, tmp_path):
    (there / "out").symlink_to("../far/logs")
    assert settled_folder("out") == tmp_path / "far" / "logs"  # as the permission names it
    appends(settled_folder("out") / "c" / "m.log", "a line")
    assert (tmp_path / "far" / "logs" / "c" / "m.log").read_text() == "a line"
    (there / "inside").symlink_to(".winnow/logs")
    assert [str(settled_folder(each)) for each in ("logs", "inside")] == ["logs", ".winnow/logs"]


@pytest.mark.parametrize("link", [".winnow", ".winnow/demo", ".winnow/demo/data/.x.fingerprint.txt"])
def test_the_demo_writes_through_no_link(there, link):
    (there / link).parent.mkdir(parents=True, exist_ok=True)
    (there / link).symlink_to(there.parent / "mine")
    with pytest.raises(SpecError, match=rf"^{link} is a link, and the demo does not follow links"):
        demo()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_files_beside_a_database_are_no_links(there, end):
    new_database(there / "results.db").close()
    (there / "new.db").unlink(missing_ok=True)
    for name in ("results.db", "new.db"):
        (there / f"{name}{end}").symlink_to("../mine/kept")
        for read_only in (False, True):
            if name == "new.db" and read_only:
                continue
            database = open_database(f"sqlite:///{there}/{name}", read_only=read_only)
            with (
                pytest.raises(StorageUnavailable, match=f"{name}{end} is a link"),
                database.reading() as session,
            ):
                session.connection()
            database.close()


@pytest.mark.parametrize("begin", ["", "rows"])
def test_no_journal_has_sqlite_delete_a_file_of_the_user(there, begin):
    (kept := there.parent / "kept.txt").write_text("mine")
    new_database(there / "results.db").close()
    name, magic = str(kept).encode(), bytes.fromhex("d9d505f920a163d7")
    head = (magic + struct.pack(">5I", 0, 0, 1, 512, 4096)).ljust(512, b"\0")
    # The page that SQLite never uses, the file's name, its length and sum.
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    (there / "results.db-journal").write_bytes(head + begin.encode() + tail)
    for read_only in (False, True):
        database = open_database(f"sqlite:///{there}/results.db", read_only=read_only)
        with (
            pytest.raises(StorageUnavailable, match="journal names another file, which SQLite would delete"),
            database.reading() as session,
        ):
            session.connection()
        database.close()
    with pytest.raises(WinnowError, match=r"--mlflow .* names another file, which SQLite would delete"):
        _require_no_links(f"sqlite:///{there}/results.db", there / "results.db")
    assert kept.read_text() == "mine"
    (there / "results.db-journal").write_bytes(b"\0" * 512)  # of an interrupted transaction, and empty
    database = open_database(f"sqlite:///{there}/results.db")
    with database.reading() as session:
        session.connection()
    database.close()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
