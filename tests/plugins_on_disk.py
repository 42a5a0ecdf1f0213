"""Plug-ins as packages install them: a module and the metadata that name it, in a folder on the path."""

import sys
from contextlib import contextmanager

NAME = "acme_plugins"
"""The module."""

CODE = '''
import os
from collections.abc import Mapping, Sequence
from copy import copy

from winnow.algorithms.best_mean.baselines.row_mean import RowMean
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.asking.judge_models import judge_models
from winnow.tasks.judges.protocol import Verdict
from winnow.tasks.spec.sections.generate_config import GenerateConfig
from winnow.tasks.judges.pairwise.protocol import PairVerdict


class Unprintable(BaseException):
    def __str__(self):
        raise SystemExit("not even this")


RAISED = {
    "plain": lambda: KeyError("colour"),
    "lines": lambda: RuntimeError("one\\ntwo \\x1b[2J\\u202e"),
    "megabyte": lambda: ValueError("x" * 1_000_000),
    "unprintable": Unprintable,
    "exit": lambda: SystemExit(0),
    "interrupt": KeyboardInterrupt,
    "base": lambda: BaseException("of no kind"),
}


def fail():
    raise RAISED[os.environ.get("ACME_RAISES", "plain")]()


def fail_at(place):
    if os.environ.get("ACME_FAILS_AT") == place:
        fail()


TOLD_AHEAD = []
"""By each judge, in the order of its rounds."""


class Judge:
    """Fails on outputs that hold a word."""

    def __init__(self, on: str = ""):
        fail_at("init")
        self.on = on

    def ahead(self, samples):
        TOLD_AHEAD.append((self.on, [each.output for each in samples]))
        fail_at("ahead")

    def judge(self, sample):
        if self.on in sample.output:
            fail()
        return Verdict.scored(len(sample.output) % 2 == 0, sample.output)


class AskingJudge:
    """A model says of an output whether it is right."""

    def __init__(self, model: Mapping[str, object], on: str = "never", shown: Sequence[str] = ("output",)):
        (self._grader,) = judge_models([model], GenerateConfig(max_tokens=4))
        self.models, self.on, self.shown, self.replies = (self._grader.ref,), on, shown, {}

    def calls(self, sample, replies):
        if self.on in sample.output:
            fail()
        grader = self._grader
        shown = " ".join(str(getattr(sample, each)) for each in self.shown)
        call = JudgeCall(
            judge=grader.id, model=grader.ref, prompt=f"ok? {shown}", sampling=grader.sampling
        )
        return () if call in replies else (call,)

    def told(self, replies):
        knowing = copy(self)
        knowing.replies = replies
        return knowing

    def judge(self, sample):
        (call,) = self.calls(sample, {})
        reply = self.replies[call]
        if isinstance(reply, GenerationFailure):
            return Verdict.unscored(reply.reason)
        return Verdict.scored(reply.text == "yes", reply.text)


class PairJudge:
    """Fails on answers that hold a word."""

    models, identity, is_deterministic = (), {}, False

    def __init__(self, on: str = ""):
        self.on = on

    def calls(self, duel, replies):
        fail_at("calls")
        return ()

    def verdict(self, duel, replies):
        if self.on in duel.answer_a + duel.answer_b:
            fail()
        return PairVerdict(outcome=0.5)


class Selector(RowMean):
    """Fails where it is told to."""

    objective = "best-mean"

    def __init__(self, setting):
        fail_at("init")
        super().__init__(setting)

    def ask(self, rng):
        fail_at("ask")
        return super().ask(rng)

    def tell(self, batch, outcomes):
        fail_at("tell")
        super().tell(batch, outcomes)

    def decision(self):
        fail_at("decision")
        return super().decision()
'''

ENTRIES = f"""
[winnow.judges]
acme-judge = {NAME}:Judge
acme-asking = {NAME}:AskingJudge
[winnow.pair_judges]
acme-pairs = {NAME}:PairJudge
[winnow.selectors]
acme-selector = {NAME}:Selector
"""


def write_plugins(folder):
    """Put the package into a folder, which has to be on the path."""
    write_package(folder, "acme", NAME, CODE, ENTRIES)


def write_package(folder, name, module, code, entries):
    """Put a package of one module and these entry points into a folder."""
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@contextmanager
def importable(folder, monkeypatch):
    """The package as this process imports it inside the block."""
    write_plugins(folder)
    monkeypatch.syspath_prepend(folder)
    try:
        yield
    finally:
        sys.modules.pop(NAME, None)
