"""Reports of all campaigns as a folder of pages, and what a report says of loads, price and the race."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from campaigns import one_message, winnow
from report_campaigns import Elements, change, figures_of, scored_campaign
from stored_campaigns import new_database, store_campaign

from winnow.flows.reports import summary
from winnow.flows.reports.html import bundle
from winnow.flows.reports.html.figures.curve import curve, zoomed
from winnow.flows.reports.html.page import UNKNOWN
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.campaigns import add_loads
from winnow.storage.records.record_types import NewModelLoad
from winnow.tasks.answer.unit_costs import running_costs, running_words
from winnow.tasks.campaign.lease import now
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

HOSTILE = '<script>alert(1)</script>&"'


def test_a_bundle_is_a_page_for_each_campaign_and_an_index_that_leads_to_them(tmp_path):
    campaign = scored_campaign(tmp_path)
    store_campaign(campaign.database, "later ../x")
    change(tmp_path, "UPDATE candidates SET name = ? WHERE name = 'b'", HOSTILE)
    result = winnow(tmp_path, "report", "--all", "site/reports")
    assert (result.returncode, result.stdout) == (0, "wrote 2 pages and site/reports/index.html\n")
    index = (tmp_path / "site" / "reports" / "index.html").read_text()
    found = Elements(index)
    links = [attributes["href"] for tag, attributes in found.tags if tag == "a"]
    assert links == ["2-later-x.html", "1-letters.html"]  # newest first
    assert all((tmp_path / "site" / "reports" / link).is_file() for link in links)
    page = (tmp_path / "site" / "reports" / links[1]).read_text()
    (title,) = re.findall("<title>(.*?)</title>", page)
    assert title.startswith("letters: undecided. No winner yet")
    scrolling = [attributes for tag, attributes in Elements(page).tags if tag == "pre"]
    assert scrolling
    assert all(each.get("tabindex") == "0" for each in scrolling)  # a keyboard reaches what scrolls
    assert not {tag for tag, _ in found.tags} & {"script", "img", "link"}
    assert HOSTILE in found.text
    assert "0.500 to 1.000" in found.text
    (policy,) = [attributes["content"] for _, attributes in found.tags if "http-equiv" in attributes]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    again = winnow(tmp_path, "report", "--all", "site/reports")  # in the place of the first
    assert again.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a campaign to report, or give --all DIR"),
        (["letters", "--all", "site"], "name a campaign to report, or give --all DIR"),
        (["--all", "site", "--html", "x.html"], "--all writes pages only"),
    ],
)
def test_what_makes_no_sense_together_is_a_sentence(tmp_path, arguments, said):
    scored_campaign(tmp_path)
    result = winnow(tmp_path, "report", *arguments)
    assert result.returncode == 2
    assert said in one_message(result)


def test_a_bundle_of_nothing_is_a_sentence(tmp_path):
    new_database(tmp_path / "winnow.db").close()
    assert "there is no campaign to report" in one_message(winnow(tmp_path, "report", "--all", "site"))
    assert not (tmp_path / "site").exists()


def test_a_bundle_that_cannot_be_written_is_a_sentence(tmp_path):
    scored_campaign(tmp_path)
    (tmp_path / "file").write_text("")
    assert "name a writable folder" in one_message(winnow(tmp_path, "report", "--all", "file"))


def test_loads_are_a_bar_for_each_model_with_how_often_it_was_loaded(tmp_path):
    campaign = scored_campaign(tmp_path)
    loads = [("m", 2.0), ("m", 3.0), ("judge", 10.0)]
    with campaign.database.writing() as session:
        add_loads(
            session,
            campaign.record.id,
            [
                NewModelLoad(model=model, devices=(), kind="load", seconds=seconds, ended_at=now())
                for model, seconds in loads
            ],
        )
    (bar,) = figures_of(campaign)["loads"].data
    assert (bar.y, bar.x, bar.text) == (("judge", "m"), (10.0, 5.0), ("1 load", "2 loads"))


def row(comparisons, estimate, lower, upper):
    return {"comparisons": comparisons, "best": "a", "estimate": estimate, "lower": lower, "upper": upper}


def test_the_curve_shows_the_race_and_not_all_that_is_possible():
    rows = [row(10, 0.5, 0.0, 1.0), row(60, 0.8, 0.6, 0.9), row(100, 0.82, 0.7, 0.88)]
    low, high = zoomed(rows)
    assert 0.45 < low < 0.5  # the first estimate is seen, its interval is cut
    assert 0.9 < high < 0.95
    shown = curve(rows, title="t", unit="u").layout.yaxis.autorangeoptions
    assert (shown.minallowed, shown.maxallowed) == (low, high)
    assert zoomed([row(10, None, None, None)]) is None
    low, high = zoomed([row(10, 0.5, None, None)])
    assert low < 0.5 < high


def test_running_costs_are_those_of_the_texts_that_a_candidate_was_scored_on(tmp_path):
    campaign = scored_campaign(tmp_path)  # 3 tokens in, 2 out, 0.25 s each, of model m
    with campaign.database.reading() as session:
        (free,) = running_costs(Look(session, campaign.record), ["b"])
        assert running_costs(Look(session, campaign.record), ["nobody"]) == ()
    assert (free.seconds, free.tokens, free.price) == (250.0, 5_000.0, None)
    execution = {
        **campaign.record.execution,
        "execution": {"prices": {"m": {"input": 2.0, "output": 10.0}}, "price_per_hour": 3.6},
    }
    change(tmp_path, "UPDATE campaigns SET execution = ?", json.dumps(execution))
    change(tmp_path, "UPDATE candidate_stats SET seconds = 0.5 * texts WHERE candidate_id = 1")
    with campaign.database.reading() as session:
        record = campaign_records.get_campaign(session, "letters")
        b, a = running_costs(Look(session, record), ["b", "a"])
    assert b.price == pytest.approx(1_000 * ((3 * 2.0 + 2 * 10.0) / 1e6 + 3.6 * 0.25 / 3600))
    assert a.seconds == 500.0
    assert running_words([b, a], is_of_program=False) == (
        "1,000 examples: b 250 s of engine time, 5,000 tokens, price 0.276; a 500 s of engine time, 5,000 "
        "tokens, price 0.526; at the measured speed, without loading"
    )
    said = "1,000 examples: b 250 s; a 500 s; measured over the calls of its function so far"
    assert running_words([b, a], is_of_program=True) == said


def test_no_number_stands_beside_names_that_it_is_not_of(tmp_path):
    campaign = scored_campaign(tmp_path)
    with campaign.database.reading() as session:
        status = campaign_status(Look(session, campaign.record))
    row = bundle._row(campaign.record, status, "1.html")
    assert (row.best, row.estimate, row.interval) == ("b", "0.750", "0.500 to 1.000")
    gate = replace(status, answer=replace(status.answer, baseline="a"))
    row = bundle._row(campaign.record, gate, "1.html")
    assert (row.best, row.estimate, row.interval) == ("against a", UNKNOWN, UNKNOWN)


def test_nothing_is_covered_before_anything_was_asked():
    certificate = SimpleNamespace(incomplete=0)
    status = SimpleNamespace(totals={"comparisons": 0}, answer=SimpleNamespace(certificate=certificate))
    assert summary._coverage(status) == "no comparison is finished yet"
