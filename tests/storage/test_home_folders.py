"""A leading `~` is the home folder wherever no shell has expanded it."""

from contextlib import closing

import pytest

from winnow.storage.engine.database import open_database
from winnow.storage.text import in_home, url_in_home


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize("path", ["d.jsonl", "/d", "a/~/b", "a~", "", "~nobody-of-this-name/x", "./~/x"])
def test_other_paths_stay_as_they_are(path):
    assert in_home(path) == path


def test_a_path_begins_in_the_home_folder_unless_the_working_folder_has_that_name(home, tmp_path):
    assert in_home("~/a/~b") == f"{home}/a/~b"
    assert in_home("~") == str(home)
    (tmp_path / "~").mkdir()
    assert in_home("~/a") == "~/a"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("sqlite:///~/r.db", "sqlite:///{home}/r.db"),
        ("sqlite:///~/r.db?timeout=3", "sqlite:///{home}/r.db?timeout=3"),
        ("sqlite+pysqlite:///~/r.db", "sqlite+pysqlite:///{home}/r.db"),
        ("sqlite:///r.db", "sqlite:///r.db"),
        ("sqlite:////~/r.db", "sqlite:////~/r.db"),
        ("postgresql://u:~p@h/~", "postgresql://u:~p@h/~"),
    ],
)
def test_a_url_of_sqlite_does_too(home, url, found):
    assert url_in_home(url) == found.format(home=home)


def test_a_database_is_opened_and_named_there(home):
    with closing(open_database("sqlite:///~/r.db")) as database:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE t (n)")
        assert database.url == f"sqlite:///{home}/r.db"
    assert (home / "r.db").is_file()
