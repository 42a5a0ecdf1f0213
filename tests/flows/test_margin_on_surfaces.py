"""With an epsilon another candidate may be better: every surface says so, and none names the best one."""

import logging
import re
from contextlib import closing

import pytest
import scripted_engines
from campaigns import winnow
from scored_campaigns import line_of, write_scored

from winnow.flows.notify.messages import as_body, message_of
from winnow.flows.reports.dashboard.screens import campaigns_page
from winnow.flows.reports.export.model_card import model_card
from winnow.flows.reports.export.trackers import campaign_run
from winnow.flows.reports.html import bundle
from winnow.flows.reports.summary import summary_lines
from winnow.flows.run.artifacts import ending, status_line
from winnow.flows.run.logging_callback import log_answer
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

pytestmark = pytest.mark.usefixtures("plain_runs")

NAMES = ("knows", "slips")
WITHIN = "no candidate is better by more than 10 points (5% risk of error)"
CALLED_BEST = re.compile(r"winner, (?:proven|exact)|\bthe best of\b|\bbest (?:of \d|knows|slips)")


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory):
    """What each surface says, by epsilon."""
    folder = tmp_path_factory.mktemp("margin")
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            scripted_engines.provide(patch, name)
        return {epsilon: said_by(folder / f"{epsilon}", epsilon) for epsilon in (0.1, 0.0)}


def said_by(folder, epsilon):
    write_scored(folder, NAMES, {"name": "champion"}, epsilon=epsilon)
    ran = winnow(folder, "run", "campaign.yaml", "--log-format", "json")
    assert ran.returncode == 0, ran.stderr
    storage = f"sqlite:///{folder}/winnow.db"
    with closing(open_database(storage)) as database, database.reading() as session:
        record = campaign_records.get_campaign(session, "survivor")
        look = Look(session, record)
        status = campaign_status(look, in_full=True)
        message = message_of(status, record, ["decided"], None, None)
        found = {
            "terminal": "\n".join(summary_lines(status, storage)),
            "JSON of a notification": as_body(message, "json"),
            "text of a notification": as_body(message, "slack"),
            "Prefect's progress": status_line(look),
            "Prefect's artifact at the end": ending(look, storage),
            "dashboard": str(campaigns_page._row(record, status)["state"]),
            "index of pages": bundle._row(record, status, "x.html").outcome,
            "model card": model_card(status, record, []),
            "tracker": str(campaign_run._tags(status)),
            "log": logged(status),
        }
    reported = winnow(folder, "report", "survivor", "--html", "page.html")
    assert reported.returncode == 0, reported.stderr
    page = (folder / "page.html").read_text()
    found["title of the page"] = re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1]
    found["heading of the page"] = re.sub(r"<[^>]+>", "", re.search(r"<main.*?<section", page, re.DOTALL)[0])
    return {**found, "line of a schedule": line_of(storage, "survivor"), "run": ran.stdout}


def logged(status):
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logger = logging.getLogger("winnow.campaign")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        log_answer(status)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    return told[0]


def test_a_margin_is_told_on_every_surface_and_nobody_is_called_the_best(surfaces):
    plain = {surface: " ".join(said.split()) for surface, said in surfaces[0.1].items()}
    assert {surface: said for surface, said in plain.items() if WITHIN not in said} == {}
    assert {surface: found[0] for surface, said in plain.items() if (found := CALLED_BEST.search(said))} == {}


def test_without_an_epsilon_the_winner_is_one_without_a_margin(surfaces):
    plain = {surface: " ".join(said.split()) for surface, said in surfaces[0.0].items()}
    assert {surface: said for surface, said in plain.items() if "by more than" in said} == {}
    assert {surface: said for surface, said in plain.items() if not re.search("winner", said)} == {}
