"""The recipes of the cookbook are campaigns that begin, given the data that they speak of."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from spec_files import load_spec

from winnow.tasks.setup.check import check_campaign

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
RECIPES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
N = 120
ROWS = {
    "tickets.csv": [
        {"text": f"ticket {i}", "label": ("billing", "shipping", "other")[i % 3]} for i in range(N)
    ],
    "questions.jsonl": [
        {
            "question": f"{i}?",
            "answer": i,
            "answers": [str(i)],
            "label": "yes",
            "language": "de" if i % 2 else "en",
        }
        for i in range(N)
    ],
    "invoices.jsonl": [{"text": f"total {i}.50", "total": i + 0.5} for i in range(N)],
    "sentences.csv": [{"en": f"line {i}", "de": f"Zeile {i}", "document": f"d{i // 3}"} for i in range(N)],
    "articles.jsonl": [{"text": f"article {i}"} for i in range(N)],
    "plus.jsonl": [
        {"task_id": i, "prompt": f"def f{i}():", "test": "def check(f): pass", "entry_point": f"f{i}"}
        for i in range(N)
    ],
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name, rows in ROWS.items():
        if name.endswith(".csv"):
            pd.DataFrame(rows).to_csv(name, index=False)
        else:
            Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for model in ("small", "large", "coder"):
        Path("path/to", model).mkdir(parents=True)
        Path("path/to", model, "config.json").write_text("{}")
    return tmp_path


def test_there_are_ten():
    assert len(RECIPES) == len(re.findall(r"^## \d", PAGE.read_text(), re.MULTILINE)) == 10


@pytest.mark.parametrize(
    "recipe", [each for each in RECIPES if "lm_eval" not in each], ids=lambda each: each.split("\n", 1)[0]
)
def test_a_recipe_begins(data, recipe):
    file = data / "campaign.yaml"
    file.write_text(recipe)
    checked = check_campaign(load_spec(file))
    assert len(checked.candidates) >= 2
    assert len(checked.dataset.examples) == N
