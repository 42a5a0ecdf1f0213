"""The README and docs/ say what is so: links lead somewhere, commands and campaigns would be taken."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from markdown.extensions.toc import slugify

import winnow
from winnow.algorithms.registry import SELECTORS
from winnow.algorithms.state import plugin_registry
from winnow.flows.cli import app
from winnow.flows.cli.start.specs import starter
from winnow.flows.run.resume import FROM_GOOD_TO_BAD
from winnow.tasks.spec.campaign import CampaignFile

ROOT = Path(__file__).parents[2]
SITE = sorted((ROOT / "docs").rglob("*.md"))
ROOM_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*SITE, *ROOM_PAGES, ROOT / "examples" / "README.md", ROOT / "infra" / "README.md"]
COMMAND_LINE = typer.main.get_command(app)
RUNNABLE = {"any-function.md", "embedder.md", "engine.md", "judge.md", "selector.md"}
FOLDERS = ("algorithms", "examples", "flows", "infra", "storage", "tasks", "tests")
OURS = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
LARGEST_PICTURE = 200_000
"""Bytes."""
FILES_OF_READERS = {"capitals.py", "my_judge.py"}
GENERATED = "winnow."
"""How the anchors begin that the API's docstrings make."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page, language):
    """The fenced blocks of a language on a page."""
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def prose(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {slugify(re.sub(r"[`*]", "", heading), "-") for heading in headings}


def broken_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if re.match(r"\w+:", target):
            continue
        known = anchor == "" or anchor.startswith(GENERATED) or (found.is_file() and anchor in anchors(found))
        if not (found.exists() and known):
            yield target


@each_page
def test_links_lead_somewhere(page):
    assert list(broken_links(page)) == []


def test_a_link_to_nowhere_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](page.md#one) [b](gone.md) [c](#two) [d](https://example.org) `[e](x)`\n")
    assert list(broken_links(page)) == ["gone.md", "#two", "x"]


def test_pictures_are_small_and_each_is_on_a_page():
    pictures = sorted((ROOT / "docs" / "assets").glob("*.png"))
    shown = "".join(page.read_text() for page in SITE)
    assert pictures
    assert [each.name for each in pictures if f"assets/{each.name})" not in shown] == []
    assert [each.name for each in pictures if each.stat().st_size > LARGEST_PICTURE] == []


@each_page
def test_files_that_are_named_are_there(page):
    for path in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py|[a-z_]+/[\w/]*)`", prose(page)):
        folder, _, rest = path.partition("/")
        if rest and folder in FOLDERS:
            assert (ROOT / path).exists(), path
        elif path.endswith(".py"):
            is_beside = (page.parent / path).exists()
            assert is_beside or path in FILES_OF_READERS or any(found.name == path for found in OURS), path


@each_page
def test_what_a_page_places_in_a_file_is_there(page):
    for name, path in re.findall(r"`([A-Za-z_.]+)`\s(?:in|of)\s`([a-z_/]+\.py)`", prose(page)):
        found = [ROOT / path] if "/" in path else [file for file in OURS if file.name == path]
        last = name.rpartition(".")[2]
        assert any(re.search(rf"\b{last}\b", file.read_text()) for file in found), (name, path)


def commands(page):
    """Command lines of a page with whether they are whole: in running text arguments may be left out."""
    text = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:    |\$ )?(winnow .*)$", text, re.MULTILINE):
        yield line, True
    for line in re.findall(r"(?<!`)`(winnow [^`]*)`(?!`)", prose(page)):
        yield line.replace("\n", " "), False


def refusal(line, *, whole):
    """Why the command line would not take this; None where it would."""
    words = shlex.split(line, comments=True)
    words = words[1 : words.index(">") if ">" in words else None]
    command = COMMAND_LINE
    names = ["winnow"]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        names.append(words.pop(0))
        command = command.get_command(None, names[-1])
        if command is None:
            return f"there is no command {names[-1]}"
    try:
        command.make_context(" ".join(names), words).close()
    except typer.Exit:
        return None
    except Exception as error:
        absent = type(error).__name__ in ("MissingParameter", "BadOptionUsage", "NoArgsIsHelpError")
        absent = absent or any(each in str(error) for each in (" is missing", " needs a value"))
        return None if absent and not whole else f"{type(error).__name__}: {error}"
    return None


@each_page
def test_commands_are_what_the_command_line_takes(page):
    found = {line: refusal(line, whole=whole) for line, whole in commands(page)}
    assert {line: why for line, why in found.items() if why} == {}


@pytest.mark.parametrize(
    "line", ["winnow runs x.yaml", "winnow run", "winnow run x.yaml --frok y", "winnow query NAME leaderbord"]
)
def test_a_command_that_is_not_taken_is_seen(line):
    assert refusal(line, whole=True)


def test_pages_print_commands():
    assert sum(whole for page in PAGES for _, whole in commands(page)) > 60


@each_page
def test_campaigns_and_parts_of_them_are_sound(page):
    for block in blocks(page, "yaml"):
        values = yaml.safe_load(block)
        if "task" in values:  # which is looked at in tests/tasks/test_benchmark_page.py
            values["dataset"] = {"path": "data.jsonl", **values.get("dataset", {})}
        whole = {"name", "models", "dataset", "prompts"} <= values.keys()
        CampaignFile.model_validate(values if whole else {**yaml.safe_load(starter("best-mean")), **values})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_programs_are_sound_and_those_that_need_no_results_run(page, tmp_path, monkeypatch):
    monkeypatch.setattr(plugin_registry, "_registered", {})
    for number, block in enumerate(blocks(page, "python")):
        compile(block, f"{page.name}, block {number}", "exec")
        if page.name in RUNNABLE:
            file = tmp_path / f"block_{number}.py"
            file.write_text(block)
            runpy.run_path(str(file))


def test_tables_name_all_selectors_and_all_keys_of_a_campaign():
    def named(page):
        cells = re.findall(r"^\| (.*?) \|", (ROOT / "docs" / page).read_text(), re.MULTILINE)
        return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}

    assert named("selectors.md") == {name for names in SELECTORS.values() for name in names}
    assert named("spec.md") == CampaignFile.model_fields.keys()


def test_the_glossary_begins_with_the_concepts_of_the_architecture():
    def words(page, heading):
        text = (ROOT / "docs" / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
        return [cell.lower() for cell in re.findall(r"^\| (.*?) \|", text, re.MULTILINE)[1:]]

    concepts = words("architecture.md", "Eleven concepts")
    explained = words("glossary.md", "Eleven concepts")
    assert len(concepts) == len(explained) == 11
    assert all(name in found.split(", ") for name, found in zip(concepts, explained, strict=True))


def test_the_reference_documents_every_public_name():
    documented = re.findall(r"^::: winnow\.(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert set(documented) == set(winnow.__all__) - {"__version__"}


def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": ".package"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) >= len(SITE)
    for page in pages:
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="?([^">\s]+)', page.read_text())
        linked = re.findall(r'<link[^>]*rel="?(?:style|preconnect)[^>]*href="?([^">\s]+)', page.read_text())
        assert [each for each in (*loaded, *linked) if re.match(r"(\w+:)?//", each)] == [], page.name
    api = (tmp_path / "api.html").read_text()
    assert 'id="winnow.select"' in api
    assert "the same seed and scores give the same answer" in api


def test_the_worst_code_of_several_campaigns_is_told_in_the_order_that_is_gone_by():
    order = ", ".join(str(int(code)) for code in FROM_GOOD_TO_BAD)
    assert (
        f"`winnow resume --all` ends with the worst code of its campaigns, of these in this order: {order}."
        in (ROOT / "docs" / "exit-codes.md").read_text()
    )


def test_each_promise_on_security_names_tests_that_are_there():
    page = (ROOT / "SECURITY.md").read_text()
    promised = page.partition("## What is guaranteed, and by what")[2].partition("\n## ")[0]
    promises = promised.split("\n- ")[1:]
    assert len(promises) > 10
    for promise in promises:
        assert "`tests/" in promise, promise[:100]
    for path in re.findall(r"`((?:algorithms|flows|infra|storage|tasks|tests)/[^`\s]+)`", page):
        assert (ROOT / path).exists(), path
