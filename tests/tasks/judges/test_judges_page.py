"""The page about judges says of each what the catalogue says."""

import re
from pathlib import Path

import pytest
import yaml

from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, describe, judge_names
from winnow.tasks.spec.judge_tree import SPARE, judge_tree

PAGE = (Path(__file__).parents[3] / "docs" / "judges.md").read_text()
OF_ALL = {"extract", "no_answer"}


def test_the_table_names_every_judge_with_its_parameters_unit_and_score():
    rows = {}
    for line in re.findall(r"^\| `.*$", PAGE.split("## An example")[0].split("|---|")[-1], re.MULTILINE):
        name, _, parameters, unit, score, _ = (cell.strip() for cell in line[1:-1].split("|"))
        rows[name.strip("`")] = (set(re.findall(r"`(\w+)`", parameters)), unit, score)
    assert rows.keys() == set(judge_names())
    for name, row in rows.items():
        told = describe(name)
        own = {each.name for each in told.parameters} - OF_ALL
        assert row == (own, told.scale.unit, told.scale.formula), name


def save_checkpoint(folder):
    """As much of one as is looked for before it is loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')


def test_every_example_is_a_judge_that_can_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (function,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "my_judge.py").write_text(function)
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    specs = [spec for block in blocks for spec in re.split(r"^(?=judge:)", block, flags=re.MULTILINE) if spec]
    found = [yaml.safe_load(spec)["judge"] for spec in specs]
    for spec in found:
        for model in judge_tree(spec).models:
            save_checkpoint(tmp_path / model["model"])
        own = {key: value for key, value in spec.items() if key not in ("type", SPARE)}  # of any judge
        create_judge(spec["type"], **own)
    made = {spec["type"] for spec in found}
    assert made | {"squad", "bleu", "ter", "any"} == set(judge_names())


@pytest.mark.parametrize(("name", "target"), [("choice", "A"), ("numeric", "1"), ("math", "1")])
def test_what_is_read_as_the_answer_is_what_the_page_says(name, target):
    (section,) = re.findall(rf"^### `{name}`\n(.*?)^##", PAGE, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(.*)` \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) >= 6
    judge = create_judge(name)
    for output, answer in rows:
        found = judge.judge(Sample(output=output.replace("⏎", "\n"), targets=[target])).answer
        assert (found or "none") == answer, output
