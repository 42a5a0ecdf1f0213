"""What is shown of a database's URL holds no password, however it is written."""

import shlex

import pytest

from winnow.storage.engine.database import shown_url, storage_option

URLS = {
    "sqlite:///winnow.db": "sqlite:///winnow.db",
    "postgresql://ann@host/x": "postgresql://ann@host/x",
    "postgresql+psycopg://ann:secret@host:5432/x": "postgresql+psycopg://ann:***@host:5432/x",
    "postgresql://host/x?user=ann&password=secret": "postgresql://host/x?password=hidden&user=ann",
    "not a url://ann:secret@host": "not a url://ann:***@host",
    "postgresql://ann:s@cre/t@host:5432/x": "postgresql://ann:***@host:5432/x",
    "postgresql://ann@azure:s@cret@host/x": "postgresql://ann@azure:***@host/x",
    "postgresql://ann@azure:secret@host/x": "postgresql://ann%40azure:***@host/x",
    "host=::1 dbname=x password = 'a secret'": "host=::1 dbname=x password =***",
}


@pytest.mark.parametrize("url", URLS)
def test_passwords_are_hidden_and_nothing_else(url):
    assert shown_url(url) == URLS[url]


@pytest.mark.parametrize(
    "url",
    ["postgresql://ann@host/results?options=-csearch_path%3Dx&sslmode=require", "sqlite:///my own.db"],
)
def test_a_printed_command_names_its_database_as_a_shell_takes_it(url):
    assert shlex.split(storage_option(url)) == ["--storage", url]
    assert storage_option("sqlite:////tmp/winnow.db") == "--storage sqlite:////tmp/winnow.db"
