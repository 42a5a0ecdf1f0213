"""The passage for a model card."""

import json
from hashlib import sha256

import pytest
from campaigns import one_message, winnow
from report_campaigns import certified_campaign, change, crowded_campaign, duelled_campaign, scored_campaign

from winnow.flows.reports.default_database import reading
from winnow.flows.reports.export.model_card import write_model_card
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look


def test_a_model_card_says_the_answer_the_certificate_and_how_to_check_it(tmp_path):
    scored_campaign(tmp_path)
    change(tmp_path, "UPDATE candidates SET name = ? WHERE name = 'b'", "<b> | [x](http://evil.example) # h")
    result = winnow(tmp_path, "report", "letters", "--model-card", "card.md")
    assert (result.returncode, result.stdout) == (0, "wrote card.md\n"), result.stderr
    card = (tmp_path / "card.md").read_text()
    assert card.startswith("## Selection: undecided\n\nNo winner yet among \\<b\\> ")
    assert "\n\nFrom the best-mean campaign letters of Winnow, which" in card
    assert "- **confidence**: undecided at error probability 0.05" in card
    assert "| candidate | estimated mean | interval |" in card
    assert "| a | 0.250 | 0.000 to 0.500 | 2 | active |" in card
    assert "| c | – | – | 0 | active |" in card
    assert "[x](" not in card
    assert "\n# h" not in card
    spec = json.loads(winnow(tmp_path, "show", "letters", "--json").stdout)["spec"]
    assert sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest() in card


@pytest.mark.parametrize(
    ("build", "value"), [(certified_campaign, "risk"), (duelled_campaign, "worst preference")]
)
def test_the_table_says_what_its_numbers_are(tmp_path, build, value):
    build(tmp_path)
    with reading(f"sqlite:///{tmp_path / 'winnow.db'}") as session:
        [record] = campaign_records.campaigns(session)
        write_model_card(Look(session, record), tmp_path / "card.md")
    assert f"| candidate | estimated {value} | interval |" in (tmp_path / "card.md").read_text()


def test_a_card_of_many_candidates_is_short_and_one_that_cannot_be_written_is_a_sentence(tmp_path):
    crowded_campaign(tmp_path, 30)
    assert winnow(tmp_path, "report", "letters", "--model-card", "card.md").returncode == 0
    assert "20 more candidates are not shown." in (tmp_path / "card.md").read_text()
    result = winnow(tmp_path, "report", "letters", "--model-card", "nowhere/card.md")
    assert result.returncode == 1
    assert "nowhere/card.md: there is no folder nowhere; create it first" in one_message(result)


def test_a_card_takes_no_database_s_place(tmp_path):
    scored_campaign(tmp_path)
    before = (tmp_path / "winnow.db").read_bytes()
    result = winnow(tmp_path, "report", "letters", "--model-card", "winnow.db")
    assert result.returncode == 1
    assert "winnow.db is a database; name another file" in one_message(result)
    assert (tmp_path / "winnow.db").read_bytes() == before
