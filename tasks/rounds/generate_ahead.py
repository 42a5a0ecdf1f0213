"""Lookahead: generate later rounds, and run their judge models, while the first one is unfinished."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from winnow.storage.records.record_types import RoundRecord
from winnow.tasks.campaign.missing_texts import GenerationBatch, TextOrFailure
from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.pool.request_scheduler import Parts
from winnow.tasks.engines.protocol import Answer
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.asking.exchange import Exchange
from winnow.tasks.judges.protocol import Judge, Sample
from winnow.tasks.rounds.generate import WantedTexts, have_outputs, plan_generations
from winnow.tasks.rounds.judge_calls import plan_judge_calls, read
from winnow.tasks.rounds.score import places_of, shown_of
from winnow.tasks.spec.stored_spec import ONLY


class JudgeAhead:
    """Calls of judges about the outputs of one round, as these arrive.

    They are only made earlier: requests and storage keys depend only on the outputs.

    Args:
        campaign: The judges' campaign.
        judges: Judges of the outcome and of metrics; at least one of them uses models.
        round_: The round of the outputs.
    """

    def __init__(
        self, campaign: CampaignSession, judges: Sequence[Judge[Sample]], round_: RoundRecord
    ) -> None:
        self._campaign, self._judges, self._round = campaign, judges, round_
        self._unread = list(range(len(round_.examples)))  # pairs whose texts are not all there
        self._exchange = Exchange[Sample]({})
        self._asked: list[tuple[Sequence[JudgeCall], WantedTexts]] = []
        self.answers: dict[JudgeCall, TextOrFailure] = {}
        """Answers to the calls so far."""

    @property
    def is_done(self) -> bool:
        """Whether all calls that the judges need for the round are answered."""
        return not self._unread and self._exchange.is_done

    def next_calls(self, texts: GenerationBatch) -> WantedTexts | None:
        """Calls that are needed now and were not before; None if there are none.

        Args:
            texts: Outputs of the round so far.
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
        """Samples of pairs that became complete since the last call."""
        places = {pair: places_of(self._campaign, pair) for pair in self._unread}
        come = [pair for pair in self._unread if all(map(texts.has, places[pair]))]
        self._unread = sorted(set(self._unread) - set(come))
        arms, examples = self._round.arms, self._round.examples
        return [
            sample
            for pair in come
            for sample in shown_of(self._campaign, arms[pair], examples[pair], texts, places[pair])
        ]


class _Begun(NamedTuple):
    """A round that engines are working on."""

    texts: WantedTexts
    judge: JudgeAhead | None
    """None if there is no judge model, or if it runs after the whole round."""

    @property
    def is_there(self) -> bool:
        return self.texts.are_there and (self.judge is None or self.judge.is_done)


class RoundsInFlight:
    """Planned, unrecorded rounds of a best-mean campaign that engines are working on.

    Outputs are committed as they arrive, for any round, and judge models run on a group once it is finished.
    Close it in any case: that ends all engines that are working.
    """

    def __init__(self, campaign: CampaignSession) -> None:
        self._campaign = campaign
        self._stream = campaign.engines.stream(
            later=campaign.checked.judge_models, take_parts=self._store_parts
        )
        self._rounds: dict[int, _Begun] = {}  # by number
        self._asked: dict[int, tuple[int, WantedTexts, int]] = {}  # round, and which group of whom, by number

    def texts_of_first(self, rounds: Sequence[RoundRecord]) -> GenerationBatch:
        """All outputs of the first round in flight, while those of the others are generated as well.

        Safe to call again after an error; it generates only what is not stored.

        Raises:
            EngineDied, EngineTimeout: Transient; committed outputs stay, and so do those that engines
                generated meanwhile.
            ServedModelDiffers: If a server that replaced another one serves a different model.
            LeaseLost: If another process took the campaign over.
        """
        if self._campaign.checked.spec.reuse == ONLY:  # nothing is asked, so that nothing is waited for
            return have_outputs(self._campaign, rounds[0], plan_generations(self._campaign, rounds[0]))
        try:
            for round_ in rounds:
                if round_.number not in self._rounds:
                    self._begin(round_)
            first = self._rounds[rounds[0].number]
            self._stream.begin()
            for number, answers in self._stream.answered():
                self._store(number, answers)
            while not first.is_there:
                self._store(*self._stream.next_answers())
        except EngineError:
            self.finish_begun()
            raise
        del self._rounds[rounds[0].number]
        made = first.texts.batch()
        return made if first.judge is None else replace(made, calls=first.judge.answers)

    def finish_begun(self) -> None:
        """Wait for running work of engines and commit it; everything else is requested later if needed."""
        self._rounds.clear()  # so that nobody is asked about what comes
        for number, answers in self._stream.finish_begun():
            self._store(number, answers)
        self._asked.clear()

    def close(self) -> None:
        """End the engines that are working."""
        self._stream.close()

    def _begin(self, round_: RoundRecord) -> None:
        planned = plan_generations(self._campaign, round_)
        wanted = WantedTexts(self._campaign, round_, planned, begun_after=round_.planned_after)
        self._rounds[round_.number] = _Begun(wanted, self._judge_of(round_))
        self._ask(round_.number, wanted)
        self._ask_judge(round_.number)

    def _judge_of(self, round_: RoundRecord) -> JudgeAhead | None:
        checked = self._campaign.checked
        if not (checked.judges_ahead and isinstance(checked, ScoredCampaign)):
            return None
        return JudgeAhead(self._campaign, checked.judges, round_)

    def _ask(self, number: int, wanted: WantedTexts) -> None:
        for place, group in enumerate(self._stream.add(wanted.groups)):
            self._asked[group] = number, wanted, place

    def _ask_judge(self, number: int) -> None:
        """Run judge models on outputs that arrived, and again if replies lead to further calls."""
        begun = self._rounds.get(number)
        while begun and begun.judge and (wanted := begun.judge.next_calls(begun.texts.batch())):
            self._ask(number, wanted)
            if not wanted.are_there:
                return

    def _store(self, group: int, answers: Sequence[Answer]) -> None:
        number, wanted, place = self._asked.pop(group)
        wanted.store(place, answers)
        self._ask_judge(number)

    def _store_parts(self, parts: Parts) -> None:
        for group, answers in parts.items():
            _, wanted, place = self._asked[group]
            wanted.store_parts({place: answers})
