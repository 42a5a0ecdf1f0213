"""A campaign's plug-ins are part of what it is: one that was edited meanwhile does not go on with it."""

import os
import sys
from dataclasses import replace
from shutil import rmtree

import pytest
from plugins_on_disk import write_plugins

from winnow.algorithms.state import plugin_registry
from winnow.tasks.setup.definition_changes import IdentityChanged
from winnow.tasks.setup.load import check_campaign_file
from winnow.tasks.setup.open_campaign import open_campaign, reopen_campaign
from winnow.tasks.spec.judge_tree import BUILT_IN

STORAGE = "sqlite:///results.db"

JUDGE = '''
from acme_words import LIMIT

from winnow.tasks.judges.protocol import Verdict


class Short:
    """The output is short."""

    def judge(self, sample):
        return Verdict.scored(len(sample.output) < LIMIT, sample.output)
'''
PAIRS = '''
import acme_words


class Shorter:
    """The shorter answer wins."""

    models, identity, is_deterministic = (), {}, False

    def calls(self, duel, replies):
        return ()

    def verdict(self, duel, replies):
        """Not asked for here."""
'''
SELECTOR = """
import acme_words

from winnow.algorithms.best_mean.baselines.row_mean import RowMean


class Mine(RowMean):
    '''The same under another name.'''

    objective = "best-mean"
"""
FILES = {
    "acme_judges": JUDGE,
    "acme_pairs": PAIRS,
    "acme_selectors": SELECTOR,
    "acme_words": "LIMIT = 5\n",
}
ENTRIES = """
[winnow.judges]
acme-short = acme_judges:Short
[winnow.pair_judges]
acme-shorter = acme_pairs:Shorter
[winnow.selectors]
acme-mine = acme_selectors:Mine
"""
CAMPAIGNS = {
    "acme_judges": ["judge={type: acme-short}"],
    "acme_pairs": ["objective=best-duel", "selector={name: llm-po}", "judge={type: acme-shorter}"],
    "acme_selectors": ["selector={name: acme-mine}"],
}
PLACES = {"acme_judges": "judge", "acme_pairs": "judge", "acme_selectors": "selector"}
"""What is said to have changed, by the plug-in's module."""


@pytest.fixture
def plugins(folder, monkeypatch):
    """The folder in which three plug-ins share a module."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(folder)
    yield folder
    forget()


def forget():
    """What another process would begin without."""
    for name in FILES:
        sys.modules.pop(name, None)


def test_what_is_installed_while_a_program_runs_is_found_and_what_is_removed_is_not(tmp_path, monkeypatch):
    def installed():
        return "acme-judge" in plugin_registry.plugins("winnow.judges")

    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (0, 0))  # long before
    assert not installed()
    write_plugins(tmp_path)
    assert installed()
    os.utime(tmp_path, (1, 1))
    assert installed()
    rmtree(tmp_path / "acme-1.0.dist-info")
    assert not installed()


@pytest.mark.parametrize("edited", ["itself", "acme_words"])
@pytest.mark.parametrize("plugin", CAMPAIGNS)
def test_a_campaign_refuses_a_plug_in_that_was_edited_since_it_began(
    plugins, campaign_file, database, plugin, edited
):
    """The reproduction: the verdicts of an edited judge were mixed silently with those of the old one."""
    open_campaign(database, check_campaign_file(campaign_file(), CAMPAIGNS[plugin]))
    forget()
    reopen_campaign(database, "letters", STORAGE)
    forget()
    module = plugin if edited == "itself" else edited
    with (plugins / f"{module}.py").open("a") as text:
        text.write("# edited\n")
    with pytest.raises(IdentityChanged) as refusal:
        reopen_campaign(database, "letters", STORAGE)
    _, *changed, _ = str(refusal.value).splitlines()
    assert changed == [f"  {PLACES[plugin]}: the code of {module} changed"]
    assert "winnow run SPEC --fork NEW_NAME" in str(refusal.value)
    forget()
    with pytest.raises(IdentityChanged, match="began with another definition"):
        open_campaign(database, check_campaign_file(campaign_file(), CAMPAIGNS[plugin]))
    open_campaign(database, check_campaign_file(campaign_file(), [*CAMPAIGNS[plugin], "name=fork"]))


def test_comparisons_of_an_edited_judge_name_another_judge(plugins, campaign_file):
    def judge_id():
        forget()
        return check_campaign_file(campaign_file(), CAMPAIGNS["acme_judges"]).judge_id

    before = judge_id()
    assert judge_id() == before
    (plugins / "acme_words.py").write_text("LIMIT = 6\n")
    assert judge_id() != before


def test_a_built_in_judge_of_another_version_does_not_go_on_either(campaign_file, database, monkeypatch):
    opened = open_campaign(database, check_campaign_file(campaign_file()))
    assert opened.spec["judge_identity"] == {"code": {"version": 1, "options": {"no_answer": 1}}}
    assert opened.spec["selector_code"] is None
    monkeypatch.setitem(BUILT_IN, "contains", replace(BUILT_IN["contains"], version=2))
    with pytest.raises(
        IdentityChanged, match=r"reads some outputs differently \(version 1 -> 2\)"
    ) as refusal:
        reopen_campaign(database, "letters", STORAGE)
    assert "winnow run SPEC --fork NEW_NAME" in str(refusal.value)
