"""Asking the models of judges while their round is written: about each text as soon as it has arrived."""

from collections.abc import Sequence

from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch, TextOrFailure
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.judges.asking.calls import JudgeCall, Reply
from winnow.tasks.judges.protocol import Judge, Sample, calls_of
from winnow.tasks.rounds.ask import plan_judge_calls, read
from winnow.tasks.rounds.generate import WantedTexts
from winnow.tasks.rounds.score import places_of, shown_of


class JudgeAhead:
    """The calls of judges about the texts of one round, as these arrive.

    They are only made earlier: what is asked, and what it is stored under, follows from the texts alone.

    Args:
        campaign: The campaign that the judges are of.
        judges: Judges of the outcome and of metrics; one of them at least asks models.
        round_: The round that the texts are of.
    """

    def __init__(self, campaign: CampaignSession, judges: Sequence[Judge], round_: RoundRecord) -> None:
        self._campaign, self._judges, self._round = campaign, judges, round_
        self._unread = list(range(len(round_.examples)))  # pairs whose texts are not all there
        # Outputs for each judge, and what is asked about them.
        self._waiting: list[tuple[Judge, Sample, Sequence[JudgeCall]]] = []
        self._asked: list[tuple[Sequence[JudgeCall], WantedTexts]] = []
        self._replies: dict[JudgeCall, Reply] = {}
        self.answers: dict[JudgeCall, TextOrFailure] = {}
        """The answers to the calls that were made."""

    @property
    def is_done(self) -> bool:
        """Whether all that the judges want to know of the round is there."""
        return not (self._unread or self._waiting)

    def next_calls(self, texts: GenerationBatch) -> WantedTexts | None:
        """The calls that are wanted now and were not before; None where there are none.

        Args:
            texts: Texts of the round, as far as they have arrived.
        """
        self._take_replies()
        in_hand = {call for calls, _ in self._asked for call in calls}
        new: dict[JudgeCall, None] = {}
        arrived = self._arrived(texts)
        shown = [(judge, sample) for judge in self._judges for sample in arrived]
        for judge, sample in [*shown, *self._told()]:
            if calls := calls_of(judge, sample, self._replies):
                self._waiting.append((judge, sample, calls))
                new |= dict.fromkeys(call for call in calls if call not in in_hand)
        if not new:
            return None
        asked = WantedTexts(self._campaign, self._round, plan_judge_calls(self._campaign, list(new)))
        self._asked.append((list(new), asked))
        return asked

    def _take_replies(self) -> None:
        """Read the answers to calls that were asked together and are all answered."""
        for calls, asked in self._asked:
            if asked.are_there:
                answers = dict(zip(calls, asked.batch(), strict=True))
                self.answers |= answers
                self._replies |= {call: read(answer) for call, answer in answers.items()}
        self._asked = [each for each in self._asked if not each[1].are_there]

    def _arrived(self, texts: GenerationBatch) -> list[Sample]:
        """The outputs of pairs all of whose texts have come since."""
        places = {pair: places_of(self._campaign, pair) for pair in self._unread}
        come = [pair for pair in self._unread if all(map(texts.has, places[pair]))]
        self._unread = sorted(set(self._unread) - set(come))
        arms, examples = self._round.arms, self._round.examples
        return [
            sample
            for pair in come
            for sample in shown_of(self._campaign, arms[pair], examples[pair], texts, places[pair])
        ]

    def _told(self) -> list[tuple[Judge, Sample]]:
        """The outputs about which all that a judge asked has been answered."""
        known = self._replies.keys()
        told = [(judge, sample) for judge, sample, calls in self._waiting if known >= set(calls)]
        self._waiting = [each for each in self._waiting if not known >= set(each[2])]
        return told
