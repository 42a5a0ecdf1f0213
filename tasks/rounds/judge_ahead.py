"""Asking the models of judges while their round is written: about each text as soon as it has arrived."""

from collections.abc import Sequence

from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch, TextOrFailure
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.asking.exchange import Exchange
from winnow.tasks.judges.protocol import Judge, Sample
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

    def __init__(
        self, campaign: CampaignSession, judges: Sequence[Judge[Sample]], round_: RoundRecord
    ) -> None:
        self._campaign, self._judges, self._round = campaign, judges, round_
        self._unread = list(range(len(round_.examples)))  # pairs whose texts are not all there
        self._exchange = Exchange[Sample]({})
        self._asked: list[tuple[Sequence[JudgeCall], WantedTexts]] = []
        self.answers: dict[JudgeCall, TextOrFailure] = {}
        """The answers to the calls that were made."""

    @property
    def is_done(self) -> bool:
        """Whether all that the judges want to know of the round is there."""
        return not self._unread and self._exchange.is_done

    def next_calls(self, texts: GenerationBatch) -> WantedTexts | None:
        """The calls that are wanted now and were not before; None where there are none.

        Args:
            texts: Texts of the round, as far as they have arrived.
        """
        for calls, asked in self._asked:  # together, once all of them are answered
            if asked.are_there:
                answers = dict(zip(calls, asked.batch(), strict=True))
                self.answers |= answers
                self._exchange.take({call: read(answer) for call, answer in answers.items()})
        self._asked = [each for each in self._asked if not each[1].are_there]
        self._exchange.begin(self._judges, self._arrived(texts))
        if not (new := list(dict.fromkeys(self._exchange.next_calls()))):
            return None
        wanted = WantedTexts(self._campaign, self._round, plan_judge_calls(self._campaign, new))
        self._asked.append((new, wanted))
        return wanted

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
