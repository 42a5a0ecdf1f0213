"""The question about candidates whose first outputs look wrong goes on by itself, by a clock of the test."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from winnow.flows.run import progress
from winnow.flows.run.first_look import ANSWER_WITHIN, approved, ask_about, not_approved, question_lines
from winnow.flows.run.progress import LiveProgress
from winnow.flows.run.signals import Interrupts
from winnow.tasks.queries.warnings.first_outputs import FirstLook, Suspect
from winnow.tasks.queries.warnings.from_spec import CampaignWarning

SENTENCE = (
    "qwen/terse scored 0 on all 4 outputs, and 4 of them contain the target: example 'e1' got "
    "'It is \x1b[31mbug.', its target is 'bug'; use judge contains"
)
SUSPECT = Suspect(arm=1, name="qwen/terse", sentences=[SENTENCE])


class Terminal:
    """A user who enters some lines, each after some seconds."""

    def __init__(self, *lines):
        self.now, self._lines = 0.0, list(lines)

    def clock(self):
        return self.now

    def line_within(self, seconds):
        if self._lines and self._lines[0][0] <= self.now + seconds:
            at, line = self._lines.pop(0)
            self.now = max(self.now, at)
            return line
        self.now += seconds
        return None


def ask(*lines, may_leave_out=True, is_stopped=lambda: False):
    user = Terminal(*lines)
    reply = ask_about(
        [SUSPECT],
        may_leave_out=may_leave_out,
        is_stopped=is_stopped,
        line_within=user.line_within,
        clock=user.clock,
    )
    return reply, user.now


@pytest.mark.parametrize(
    ("entered", "reply"),
    [
        ("l\n", "leave out"),
        (" Leave Out \n", "leave out"),
        ("s\n", "stop"),
        ("g\n", "go on"),
        ("\n", "go on"),
        ("", "go on"),
    ],
)
def test_an_answer_is_taken_at_once(entered, reply):
    assert ask((3.0, entered)) == (reply, 3.0)


def test_it_goes_on_by_itself():
    reply, now = ask()
    assert (reply, now) == ("go on", pytest.approx(ANSWER_WITHIN))


def test_what_is_no_answer_is_asked_again_and_takes_no_longer(capsys):
    assert ask((1.0, "what?\n"), (2.0, "l\n")) == ("leave out", 2.0)
    assert "answer s (stop), g (go on) or l (leave out)" in capsys.readouterr().err
    reply, now = ask((1.0, "what?\n"))
    assert (reply, now) == ("go on", pytest.approx(ANSWER_WITHIN))
    assert ask((1.0, "l\n"), (2.0, "s\n"), may_leave_out=False) == ("stop", 2.0)


def test_who_asked_to_stop_is_not_waited_for():
    assert ask(is_stopped=lambda: True) == ("go on", 0.0)


def test_the_question_fits_a_terminal_and_shows_no_control_character():
    lines = question_lines([SUSPECT] * 12, 80, may_leave_out=True)
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    said = " ".join(map(str.strip, lines))
    assert said.startswith(
        "The first outputs of 12 candidates look as if the judge, the prompt or a setting were wrong:"
    )
    assert "and 4 more" in said
    assert said.endswith("Without an answer, it goes on in 60 s.")


def test_who_approved_the_outputs_is_not_asked_again():
    with approved({"qwen/terse"}):
        assert not_approved([SUSPECT]) == []
    assert not_approved([SUSPECT]) == [SUSPECT]


class OnTerminal:
    """A display at a terminal, with what a first look finds and how its user replies."""

    def __init__(self, monkeypatch, reply, *, can_ask=True, statuses=("active",) * 4):
        self.asked, self.events, self.interrupts = [], [], Interrupts()
        self.display = LiveProgress(self.interrupts, self._aside)
        warning = CampaignWarning(kind="zero-holds-target", sentence=SENTENCE, about=("qwen/terse",))
        found = FirstLook(suspects=[SUSPECT], warnings=[warning])
        monkeypatch.setattr(self.display, "first_look", lambda *_: found)
        monkeypatch.setattr(progress, "can_ask", lambda _: can_ask)
        monkeypatch.setattr(progress, "can_leave_out", lambda _: True)

        def ask_about(suspects, *, may_leave_out, is_stopped):
            self.events.append("asked")
            self.asked.append((list(suspects), may_leave_out))
            return reply

        monkeypatch.setattr(progress, "ask_about", ask_about)
        decision = SimpleNamespace(status=statuses)
        self.campaign = SimpleNamespace(
            selector=SimpleNamespace(decision=lambda: decision), checked=SimpleNamespace(spares=False)
        )

    @contextmanager
    def _aside(self):
        self.events.append("aside")
        yield
        self.events.append("back")

    def judged(self):
        return [*self.display.round_judged(self.campaign, None)]


def test_a_display_steps_aside_for_one_question(monkeypatch):
    user = OnTerminal(monkeypatch, "leave out")
    assert user.judged() == [1]
    assert user.events == ["aside", "asked", "back"]
    assert user.judged() == []
    assert user.asked == [([SUSPECT], True)]


def test_a_reply_to_stop_ends_after_the_round(monkeypatch):
    user = OnTerminal(monkeypatch, "stop")
    assert user.judged() == []
    assert user.interrupts.asked


def test_at_least_two_candidates_are_left(monkeypatch):
    user = OnTerminal(monkeypatch, "go on", statuses=("active", "active", "eliminated"))
    assert user.judged() == []
    assert user.asked == [([SUSPECT], False)]


def test_nobody_is_asked_without_a_terminal(monkeypatch):
    user = OnTerminal(monkeypatch, "leave out", can_ask=False)
    assert user.judged() == []
    assert not user.asked
