"""Campaigns for reports, stored as a run would store them, and what their pages hold."""

import json
import math
import sqlite3
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count

import campaign_processes as processes
import certify_campaigns as certify
import numpy as np
import pytest
import scripted_engines
from campaigns import winnow
from stored_campaigns import NOW, decision, judgment, new_database, store_campaign

from winnow.flows.reports.html.sections.standard import sections_of
from winnow.storage.engine.database import open_database
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import NewComparison
from winnow.tasks.campaign.look import Look
from winnow.tasks.setup.load import check_campaign_file

WRONG_IN = {"large/plain": 0, "medium/plain": 40, "small/plain": 2}
"""Candidate -> the number whose multiples it is wrong on; 0 is none."""


def certified_campaign(folder):
    """A campaign that certifies two of three candidates, told what humans and models would say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        provide_models(patch)
        database = open_database(processes.store(certify.write_certify(folder, labelled=certify.N_EXAMPLES)))
        selector = check_campaign_file("campaign.yaml").create_selector()
    with database.reading() as session:
        campaign = campaign_records.get_campaign(session, "survivor")
    for number in count():
        batch = selector.ask(np.random.default_rng([campaign.seed, number]))
        if not len(batch.arms):
            break
        record(database, campaign, number, batch, selector)


def provide_models(patch):
    scripted_engines.provide_all(patch)


def record(database, campaign, number, batch, selector):
    """Tell the selector the losses of a round, and store them with what it then believes."""
    with database.writing() as session:
        names = campaign_records.candidate_names(session, campaign.id)
        candidates = campaign_records.candidate_ids(session, campaign.id)
        examples = dataset_records.example_ids(session, campaign.dataset_id)
        losses = [
            loss_triple(names[arm], example) for arm, example in zip(batch.arms, batch.examples, strict=True)
        ]
        selector.tell(batch, np.array(losses))
        found = selector.decision()
        round_ = round_records.add_round(
            session,
            campaign.id,
            number=number,
            arms=batch.arms.tolist(),
            examples=batch.examples.tolist(),
            now=NOW,
        )
        compared = [
            NewComparison(
                position=position,
                candidate_a_id=candidates[arm],
                example_id=examples[example],
                judge="exact",
                outcome=1.0 - human,
                human_loss=human,
                auto_loss=auto,
                unlabelled_loss=other,
                unlabelled_missing=0.0,
            )
            for position, (arm, example, (human, auto, other)) in enumerate(
                zip(batch.arms, batch.examples, losses, strict=True)
            )
        ]
        believed = decision(
            best_candidate_id=None if found.best is None else candidates[found.best],
            estimates=known(found.estimates),
            lower=known(found.lower),
            upper=known(found.upper),
            stop=found.stop,
            reason=found.reason,
        )
        outcome_records.add_outcomes(session, round_.id, compared, believed, NOW)


def loss_triple(name, example):
    """With the label of an example, with the grader's answer to it, and with its answers to others."""
    said = scripted_engines.letter(f"{example}", wrong_in=WRONG_IN[name])
    graded = scripted_engines.letter(f"{example}", wrong_in=10)
    return float(said != certify.truth(example)), float(said != graded), float(name == "small/plain") / 2


def known(values):
    return [None if math.isnan(value) else value for value in values.tolist()]


def scored_campaign(folder):
    """A campaign of scores in which candidate b leads."""
    campaign = store_campaign(new_database(folder / "winnow.db"))
    believed = {"estimates": [0.25, 0.75, None], "lower": [0.0, 0.5, None], "upper": [0.5, 1.0, None]}
    campaign.finish(campaign.plan(0, [0, 0, 1], [0, 1, 0]), [0.0, 1.0, 1.0], best=0, **believed)
    campaign.finish(
        campaign.plan(1, [1, 1, 2], [1, 2, 0]),
        [0.5, 1.0, None],
        best=1,
        stop=True,
        reason="budget",
        **believed,
    )
    return campaign


def decided_campaign(database, name="letters"):
    """A campaign that b has won: it is proven to be ahead of a, and c is far behind."""
    campaign = store_campaign(database, name)
    campaign.finish(
        campaign.plan(0, [0, 1, 1, 2], [0, 1, 2, 3]),
        [1.0, 1.0, 1.0, 0.0],
        best=1,
        estimates=[0.6, 0.9, 0.1],
        lower=[0.4, 0.8, 0.0],
        upper=[0.7, 1.0, 0.3],
        status=["eliminated", "best", "eliminated"],
        claim={"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []},
        stop=True,
        reason="confident",
        differences={
            "against": 1,
            "delta": 0.05,
            "estimates": [-0.3, None, -0.8],
            "lower": [-0.5, None, -0.9],
            "upper": [-0.1, None, -0.5],
        },
    )
    return campaign


def duelled_campaign(folder):
    """A campaign of duels in which a beats b and nobody met c."""
    campaign = store_campaign(new_database(folder / "winnow.db"), objective="best-duel")
    swaps = [judgment("original", 1.0), judgment("swapped", 0.0)]
    campaign.finish_duels(
        campaign.plan(0, [[0, 1], [1, 0], [0, 1], [0, 1]], [0, 1, 2, 3]),
        [(1.0, swaps), (0.0, []), (0.5, []), (None, [])],
        best=0,
        estimates=[0.8, 0.2, None],
        lower=[0.6, 0.0, None],
        upper=[1.0, 0.4, None],
    )
    return campaign


def routed_campaign(folder):
    """A campaign that gave prompts e0 to e3 to a, a, b and b, in two rounds."""
    campaign = store_campaign(new_database(folder / "winnow.db"), objective="route", delta=None)
    spec = {**campaign.record.spec, "prompt_type": "input"}
    change(folder, "UPDATE campaigns SET spec = ?", json.dumps(spec))
    believed = {"estimates": [0.5, 1.0, None], "lower": [None] * 3, "upper": [None] * 3}
    campaign.finish(campaign.plan(0, [0, 0, 1], [0, 1, 2]), [1.0, 0.0, 1.0], best=0, **believed)
    campaign.finish(campaign.plan(1, [1], [3]), [1.0], best=1, **believed)
    with campaign.database.reading() as session:
        return replace(campaign, record=campaign_records.get_campaign(session, "letters"))


def gated(folder):
    """A gate against a, which b passes and c fails."""
    campaign = store_campaign(new_database(folder / "winnow.db"))
    spec = {**campaign.record.spec, "selector": {"name": "gate", "params": {"baseline": "a"}}}
    change(folder, "UPDATE campaigns SET spec = ?", json.dumps(spec))
    arms, examples = zip(*((arm, example) for arm in range(3) for example in range(5)), strict=True)
    campaign.finish(
        campaign.plan(0, arms, examples),
        [1.0] * 10 + [0.0] * 5,
        best=None,
        estimates=[1.0, 1.0, 0.0],
        lower=[0.6, 0.6, 0.0],
        upper=[1.0, 1.0, 0.4],
        status=["baseline", "no-worse", "worse"],
        claim={"kind": "proven", "delta": 0.05, "raised_by": [], "assumptions": [], "refuted": []},
        stop=True,
        reason="confident",
        differences={
            "against": 0,
            "delta": 0.05,
            "estimates": [None, 0.0, -1.0],
            "lower": [None, -0.1, -1.0],
            "upper": [None, 0.1, -0.4],
        },
    )


def crowded_campaign(folder, n_candidates, n_examples=60):
    """Many candidates with long names, of which the two best are still open when the budget is spent."""
    names = [
        f"organisation-{k % 4}/a-model-with-a-long-name-of-{k}-billion-parameters/step-by-step-in-few-words"
        for k in range(n_candidates)
    ]
    campaign = store_campaign(new_database(folder / "winnow.db"), names=names, n_examples=n_examples)
    means = np.linspace(0.9, 0.2, n_candidates)
    rng = np.random.default_rng(1)
    for number, leader in enumerate((2, 1, 0)):
        arms = list(range(n_candidates)) if number == 0 else [0, 1] * 20
        examples = [number * 20 + place // 2 for place in range(len(arms))] if number else [0] * n_candidates
        width = 0.3 / (number + 1)
        campaign.finish(
            campaign.plan(number, arms, examples),
            [float(rng.random() < means[arm]) for arm in arms],
            best=leader,
            estimates=means.tolist(),
            lower=(means - width).clip(0.0, 1.0).tolist(),
            upper=(means + width).clip(0.0, 1.0).tolist(),
            status=["active"] * 2 + ["eliminated"] * (n_candidates - 2),
            stop=number == 2,
            reason="budget" if number == 2 else "running",
            differences={
                "against": leader,
                "delta": 0.05,
                "estimates": behind(leader, means - means[leader]),
                "lower": behind(leader, np.full(n_candidates, -0.4)),
                "upper": behind(leader, np.full(n_candidates, 0.1)),
            },
        )
    return campaign


def behind(leader, values):
    return [None if arm == leader else value for arm, value in enumerate(values.tolist())]


class Elements(HTMLParser):
    """Start tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.scripts = [], "", []
        self._inside = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data


def page_of(folder, name="letters"):
    result = winnow(folder, "report", name, "--html", "page.html")
    assert (result.returncode, result.stdout) == (0, "wrote page.html\n"), result.stderr
    return (folder / "page.html").read_text("utf-8")


def figures_of(campaign):
    """Traces of each figure on a stored campaign's page, by the name of its section."""
    with campaign.database.reading() as session:
        return {
            section.name: section.figure
            for section in sections_of(Look(session, campaign.record))
            if section.figure is not None
        }


def change(folder, statement, *values):
    connection = sqlite3.connect(folder / "winnow.db")
    with connection:
        connection.execute(statement, values)
    connection.close()
