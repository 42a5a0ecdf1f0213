"""`winnow demo --quick` from its first word to its page, with models that have learned next to nothing."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from campaigns import one_message, winnow
from spec_files import load_spec

from winnow.flows.cli.browser import open_in_browser
from winnow.infra.demo import prepare
from winnow.infra.demo.campaigns.quick import quick_lines, quick_text
from winnow.infra.demo.recipes import QUICK, Recipe

pytestmark = pytest.mark.usefixtures("prefect_api")

TINY = Recipe(name="only", hidden_size=32, layers=1, heads=2, steps=1, batch_size=4, mix={"letter": 1.0})


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "prepare_quick", partial(prepare.prepare_quick, recipes=[TINY]))
    return partial(winnow, tmp_path, "demo")


def test_the_quick_demo_ends_with_an_answer_a_page_and_what_shows_more(demo, tmp_path, monkeypatch):
    ran = demo("--quick")
    assert ran.returncode in (0, 3), ran.stderr
    assert "trained .winnow/demo/only" in ran.stdout
    assert "\nquick: " in ran.stdout
    page = tmp_path / ".winnow" / "demo" / "quick.html"
    assert f"wrote {page.relative_to(tmp_path)}\n" in ran.stdout
    assert "only/asked/greedy" in page.read_text()
    shown = [line.split("  #")[0].split() for line in ran.stdout.partition("to see more:\n")[2].splitlines()]
    assert [command[1] for command in shown] == ["report", "query"]
    for word, command in (("page", "winnow report quick --html quick.html"), ("browse", "winnow view")):
        assert f"\n  {word:<13}{command} --storage sqlite:///.winnow/demo/winnow.db\n" in ran.stdout
    for command in shown:
        assert winnow(tmp_path, *command[1:]).returncode == 0
    monkeypatch.setattr(
        "winnow.tasks.plugins.extras.find_spec", lambda name: None if name == "plotly" else name
    )
    again = demo("--quick")
    assert again.returncode == ran.returncode
    assert "trained" not in again.stdout
    assert "round 1" not in again.stderr
    assert "pip install 'winnow-llm[report]'" in again.stdout


def test_a_campaign_that_was_there_before_the_demo_is_asked_about(demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = prepare.prepare_quick(Path(".winnow", "demo"), print, train=lambda *_: None)
    file.write_text(file.read_text().replace("execution: {", "execution: {notify: [{url: $SECRET}], "))
    ran = demo("--quick")
    assert ran.returncode == 2
    assert "would send how campaigns end to the URL in the environment variable SECRET" in one_message(ran)
    assert not (tmp_path / ".winnow" / "demo" / "winnow.db").exists()


@pytest.mark.parametrize("screen", [{}, {"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}])
def test_a_page_is_opened_where_there_is_a_screen_and_what_opens_it_says_nothing(monkeypatch, screen):
    opened = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("subprocess.Popen", lambda command, **streams: opened.append((command, streams)))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in screen.items():
        monkeypatch.setenv(name, value)
    open_in_browser("page.html")
    assert [command for command, _ in opened] == ([["xdg-open", "page.html"]] if screen else [])
    for _, streams in opened:
        assert {streams[each] for each in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}


def test_the_quick_demo_is_of_scores(demo):
    ran = demo("--quick", "--objective", "route")
    assert ran.returncode == 2
    assert "--objective" in one_message(ran)


def test_the_campaign_of_the_quick_demo_fits_its_data(tmp_path):
    (tmp_path / "quick.yaml").write_text(quick_text(tmp_path, tmp_path / "letters.jsonl", QUICK))
    spec = load_spec(tmp_path / "quick.yaml")
    assert {model.provider for model in spec.models} == {"transformers"}
    assert spec.stopping.budget == 8 * len(quick_lines().splitlines())
