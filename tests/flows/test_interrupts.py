"""Ctrl-C: one asks, two force, more are ignored while everything ends. SIGTERM and SIGHUP force at once."""

import os
import signal

import pytest

from winnow.flows.run.signals import Interrupts


def press():
    os.kill(os.getpid(), signal.SIGINT)


def run_and_end(ended):
    """What runs until the second Ctrl-C, and must not be cut off by more of them while it ends."""
    try:
        press()
        press()
    finally:
        press()
        press()
        ended.append("the lease is given back")


def test_the_first_asks_the_second_forces_and_more_do_not_cut_off_what_ends(capsys):
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    ended = []
    with pytest.raises(KeyboardInterrupt), interrupts.caught():
        run_and_end(ended)
    assert ended
    assert interrupts.asked
    assert "press Ctrl-C again" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_service_manager_and_a_lost_terminal_stop_at_once_and_have_an_exit_code_of_their_own(number, code):
    # Whoever runs the tests under nohup has SIGHUP ignored.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        interrupts = Interrupts()
        with pytest.raises(KeyboardInterrupt), interrupts.caught():
            os.kill(os.getpid(), number)
        assert interrupts.asked
        assert interrupts.exit_code == code
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_hangup_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupts = Interrupts()
        with interrupts.caught():
            os.kill(os.getpid(), signal.SIGHUP)
        assert not interrupts.asked
    finally:
        signal.signal(signal.SIGHUP, before)
