"""The judge that docs/extend shows works as a package installs it."""

import re
import sys
from pathlib import Path

import pytest

from tests.plugins_on_disk import write_package
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, describe, judge_code

PAGE = Path(__file__).parents[3] / "docs" / "extend" / "judge.md"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    text = PAGE.read_text(encoding="utf-8")
    (code,) = [
        each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class Longest" in each
    ]
    write_package(tmp_path, "mine", "my_judges", code, "[winnow.judges]\nlongest = my_judges:Longest\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_judges", None)


@pytest.mark.usefixtures("installed")
def test_the_judge_of_the_page_scores_by_its_parameters_and_those_of_all_judges():
    shown = Sample(output="answer: abcd")
    assert create_judge("longest", most=24).judge(shown).score == 0.5
    assert create_judge("longest", most=8, extract=r"answer: (\w+)").judge(shown).score == 0.5
    assert create_judge("longest").calls(shown, {}) == ()
    assert create_judge("longest").models == ()
    assert [each.name for each in describe("longest").parameters] == ["most", "extract", "no_answer"]
    assert judge_code("longest")["files"].keys() == {"my_judges"}
