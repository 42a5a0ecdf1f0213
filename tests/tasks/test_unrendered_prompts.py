"""Prompts are rendered once for all who ask; one that cannot be is a comparison with a reason, and no end."""

import pytest
from sqlalchemy import text
from stepwise_campaigns import begun, run_round, write_campaign, write_duels

from winnow.tasks.candidates.likelihood_scoring import asked_of
from winnow.tasks.data import trial_renders
from winnow.tasks.errors import SpecError, TemplateError
from winnow.tasks.queries.check_texts import findings
from winnow.tasks.rounds import generate
from winnow.tasks.rounds.plan import plan_round
from winnow.tasks.setup.load import check_campaign_file

pytestmark = pytest.mark.usefixtures("scripted_models")

FAILS_ON_3 = "{{ input }}{{ '' if 1 / (input | int - 3) }}:"


def failing(tmp_path, write, **changes):
    prompts = [{"name": "plain", "template": "{{ input }}="}, {"name": "bad", "template": FAILS_ON_3}]
    return write(tmp_path, "letters", prompts=prompts, **changes)


def rows(database, statement):
    with database.reading() as session:
        return [tuple(row) for row in session.execute(text(statement))]


UNSCORED = """
    SELECT c.name, e.key, x.reason, x.detail FROM comparisons x
    JOIN candidates c ON c.id = x.candidate_a_id JOIN examples e ON e.id = x.example_id
    WHERE x.outcome IS NULL ORDER BY c.name
"""


def test_where_few_prompts_are_all_tried_the_file_is_refused(tmp_path):
    path = str(failing(tmp_path, write_campaign))
    with pytest.raises(SpecError, match=r"prompts\[1\]\.template: example 'e3': .*division by zero"):
        check_campaign_file(path)


@pytest.mark.parametrize("reuse", ["all", "none", "campaign"])
def test_where_it_was_not_tried_the_comparison_has_a_reason(tmp_path, database, monkeypatch, reuse):
    monkeypatch.setattr(trial_renders, "MOST", 0)
    with begun(database, failing(tmp_path, write_campaign, reuse=reuse)) as campaign:
        run_round(campaign)
    found = rows(database, UNSCORED)
    assert [row[:3] for row in found] == [
        ("one/bad", "e3", "not_rendered"),
        ("two/bad", "e3", "not_rendered"),
    ]
    assert "prompts[1].template: example 'e3': the template failed: division by zero" in found[0][3]
    # All others were asked; nothing was sent in this one's place.
    assert rows(database, "SELECT count(*) FROM generations") == [(30,)]
    assert rows(database, "SELECT count(*) FROM prompts WHERE text = ''") == [(0,)]
    with database.reading() as session:
        assert list(findings(session)) == []


WEIGHED = {
    "output_type": "multiple-choice",
    "choices": {"texts": list("abcdefg")},
    "judge": {"type": "acc"},
}


@pytest.mark.parametrize(
    ("changes", "renders"), [({}, 16), (WEIGHED, 32)], ids=["by prompt", "what is weighed by model too"]
)
def test_a_prompt_is_rendered_once_for_all_that_ask_it(tmp_path, database, monkeypatch, changes, renders):
    rendered = []

    def asked(candidate, weighing, fields, key, *images):
        rendered.append((candidate.names.prompt, key))
        return asked_of(candidate, weighing, fields, key, *images)

    with begun(database, write_campaign(tmp_path, "letters", **changes)) as campaign:
        round_ = plan_round(campaign)
        alone = [
            generate.plan_generation(campaign, arm, example, 0)
            for arm, example in zip(round_.arms, round_.examples, strict=True)
        ]
        monkeypatch.setattr(generate, "asked_of", asked)
        assert generate.plan_generations(campaign, round_) == alone
    assert (len(alone), len(rendered), len(set(rendered))) == (32, renders, 16)


def test_a_duel_that_lacks_a_side_has_a_reason(tmp_path, database, monkeypatch):
    rounds = {"batch_size": 60, "stopping": {"budget": 60, "delta": 0.05}}
    monkeypatch.setattr(trial_renders, "MOST", 0)
    with begun(database, failing(tmp_path, write_duels, **rounds)) as campaign:
        run_round(campaign)
    reasons = rows(database, "SELECT DISTINCT reason FROM comparisons WHERE reason IS NOT NULL")
    assert reasons == [("not_rendered",)]


def test_one_that_takes_too_long_is_one_of_them(tmp_path, database, monkeypatch):
    monkeypatch.setattr(trial_renders, "MOST", 0)

    def slow(template, fields, key=None):
        if key == "e3":
            raise TemplateError("the template takes more than 5 s")
        return f"{fields['input']}="

    path = write_campaign(tmp_path, "letters")
    with begun(database, path) as campaign:
        monkeypatch.setattr("winnow.tasks.candidates.prompt_template.render", slow)
        run_round(campaign)
    assert {row[1] for row in rows(database, UNSCORED)} == {"e3"}
