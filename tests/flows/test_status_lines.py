"""The answer's block: the same words in the terminal and on the page, and how a terminal shows them."""

from dataclasses import replace

import pytest
from report_campaigns import Elements, crowded_campaign, decided_campaign, page_of, scored_campaign
from stored_campaigns import new_database

from winnow.flows.reports.output import GREEN, PLAIN
from winnow.flows.reports.summary import hanging, print_summary, summary_lines
from winnow.tasks.answer.follow_ups import running_of
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.status_lines import cost, named_winner, status_lines
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status
from winnow.tasks.queries.warnings.from_spec import CampaignWarning

STORAGE = "sqlite:///winnow.db"


def status_of(campaign):
    with campaign.database.reading() as session:
        return campaign_status(Look(session, campaign.record), in_full=True)


@pytest.fixture
def decided(tmp_path):
    """The status of a campaign that b has won."""
    return status_of(decided_campaign(new_database(tmp_path / "winnow.db")))


@pytest.mark.parametrize(
    ("tied", "told"), [((), ["b", "a"]), (("b", "a"), ["b", "a"]), (("b", "c"), ["b", "c"])]
)
def test_of_candidates_that_share_the_first_place_is_told_what_each_takes(tmp_path, tied, told):
    """The reproduction: one of them was told beside one that is out."""
    campaign = decided_campaign(new_database(tmp_path / "winnow.db"))
    answer = status_of(campaign).answer
    shared = [
        replace(each, status="tied" if each.name in tied else each.status) for each in answer.candidates
    ]
    answer = replace(answer, candidates=tuple(shared))
    with campaign.database.reading() as session:
        assert [each.name for each in running_of(Look(session, campaign.record), answer)] == told


def test_a_winner_is_told_in_a_few_lines_of_a_narrow_terminal(decided):
    lines = summary_lines(decided, STORAGE, width=80)
    block = lines[: next(n for n, line in enumerate(lines) if line.startswith("  spent"))]
    assert block == [
        "letters: winner, proven",
        "Use b: estimated mean 0.900 on these 5 examples (0.800 to 1.000), 2 of them",
        "scored. Best of 3 candidates on these 5 examples (5% risk of error); it took 4",
        "of 15 comparisons (26.7%). Not known: which of the 3 candidates is best on new",
        "examples.",
        "  winner       b",
        "  mean         0.900, between 0.800 and 1.000 on the 5 examples (95% confidence",
        "               for all intervals and rounds together)",
        "  runner-up    a: b is ahead by 0.300 on the 5 examples, between 0.100 and 0.500",
        "  confidence   on these 5 examples no candidate has a mean that is higher (at",
        "               most 5% risk of error)",
        "  cost         4 comparisons in 1 round: 26.7% of the full grid of 15 (73.3%",
        "               saved)",
        "  eliminated   2 of 3 candidates, shown not to be the best",
        "  new examples the difference between b and a is not estimated: that needs at",
        "               least 30 randomly drawn examples scored for both b and a; there",
        "               are 0",
        "  running cost 1,000 examples: b 250 s of engine time, 5,000 tokens; a 250 s of",
        "               engine time, 5,000 tokens; at the measured speed, without loading",
    ]


def test_a_brief_answer_has_six_lines_below_its_headline_and_says_where_the_rest_is(decided):
    lines = summary_lines(decided, STORAGE, width=300, is_brief=True)
    assert [line.split()[0] for line in lines[2:]] == ["winner", "runner-up", "confidence", "cost", "more"]
    assert lines[-1] == f"  more         winnow status letters --storage {STORAGE}"
    warnings = tuple(CampaignWarning(kind="all-equal", sentence=f"check {n}") for n in range(4))
    block = summary_lines(replace(decided, warnings=warnings), STORAGE, width=300, is_brief=True)[2:-1]
    assert len(block) == 6
    assert block[:2] == ["  check        check 0", "  check        3 more; winnow status shows them"]
    two = summary_lines(replace(decided, warnings=warnings[:2]), STORAGE, width=300, is_brief=True)[2:-1]
    assert two[:2] == ["  check        check 0", "  check        check 1"]


def test_a_brief_answer_is_whole_where_there_is_no_terminal(decided, capsys):
    print_summary(decided, STORAGE, is_brief=True)
    assert capsys.readouterr().out.splitlines() == summary_lines(decided, STORAGE)


def test_page_and_terminal_say_the_same_of_every_outcome(tmp_path):
    for number, make in enumerate((scored_campaign, lambda folder: crowded_campaign(folder, 4))):
        folder = tmp_path / str(number)
        folder.mkdir()
        campaign = make(folder)
        status = status_of(campaign)
        text = " ".join(Elements(page_of(folder)).text.split())
        whole = summary_lines(status, STORAGE)
        for word, sentence in status_lines(status.answer, status.totals):
            assert f"{word}{sentence}" in text
            assert f"  {word:<13}{sentence}" in [line.replace(f" --storage {STORAGE}", "") for line in whole]
        assert whole[0] == f"letters: {headline(status.answer, status.state)}"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_sentences_are_broken_between_words_and_commands_stay_whole(tmp_path, width):
    status = status_of(crowded_campaign(tmp_path, 3))
    whole, lines = (summary_lines(status, STORAGE, width=each) for each in (None, width))
    assert "".join("".join(lines).split()) == "".join("".join(whole).split())
    commands = next(n for n, line in enumerate(lines) if line.startswith("  database"))
    assert lines[commands:] == whole[-len(lines[commands:]) :]
    for line in lines[:commands]:
        assert len(line) <= width or len(line.split()) <= 2  # a name may be longer than a line


def test_words_are_measured_in_columns_of_the_terminal():
    assert hanging("a ", "bb 漢字 漢字", 9) == ["a bb 漢字", "  漢字"]
    assert hanging("a ", "a-word-that-is-too-long for it", 8) == ["a a-word-that-is-too-long", "  for it"]
    assert hanging("a ", "of 45.1 s in 3 min", 8) == ["a of", "  45.1 s", "  in", "  3 min"]
    assert hanging("a ", "of 45 or so", 8) == ["a of 45", "  or so"]
    assert hanging("a ", "one line", None) == ["a one line"]
    broken = ["a of", "  a-model/", "  asked/", "  warm: more"]
    assert hanging("a ", "of a-model/asked/warm: more", 12) == broken
    assert hanging("a ", "a/b c/d", 5) == ["a a/b", "  c/d"]  # what fits a line is not broken


def test_badge_and_winner_have_colours_only_where_they_are_asked_for(decided, monkeypatch, capsys):
    coloured = summary_lines(decided, STORAGE, has_colours=True)
    assert GREEN in coloured[0]
    assert coloured[0].endswith(f"proven{PLAIN}")
    assert f"{GREEN}b{PLAIN}" in coloured[2]
    assert not any(PLAIN in line for line in coloured[3:])
    print_summary(decided, STORAGE)
    assert PLAIN not in capsys.readouterr().out  # no terminal
    for no_color, is_seen in (("", True), ("1", False)):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("NO_COLOR", no_color)
        print_summary(decided, STORAGE)
        assert (PLAIN in capsys.readouterr().out) == is_seen


def test_only_a_winner_is_named_as_one(decided):
    lines = status_lines(decided.answer, decided.totals)
    assert [named_winner(decided.answer, line) for line in lines if line[0] == "winner"] == ["b"]
    undecided = replace(decided.answer, outcome="undecided")
    assert not any(named_winner(undecided, line) for line in lines)


def test_nothing_is_said_to_be_saved_where_all_was_asked(decided):
    totals = {"answered": 1_500, "rounds": 3, "grid": 1_500}
    assert cost(decided.answer, totals) == "1,500 comparisons in 3 rounds: 100.0% of the full grid of 1,500"
    assert cost(decided.answer, totals | {"grid": 0}) == "1,500 comparisons in 3 rounds"


@pytest.mark.parametrize("outcome", [None, "undecided", "failed"])
def test_nothing_is_said_to_be_saved_without_an_answer(decided, outcome):
    totals = {"answered": 150, "rounds": 3, "grid": 1_500}
    assert cost(decided.answer, totals).endswith("10.0% of the full grid of 1,500 (90.0% saved)")
    open_ = replace(decided.answer, outcome=outcome)
    assert cost(open_, totals) == "150 comparisons in 3 rounds: 10.0% of the full grid of 1,500"
