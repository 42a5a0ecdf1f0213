"""Ctrl-C: one asks, two force, more are ignored while everything ends."""

import os
import signal

import pytest

from flows.interrupts import Interrupts


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
