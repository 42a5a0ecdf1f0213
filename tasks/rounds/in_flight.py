"""Several rounds in the engines at once: later ones are asked for while the first is waited for."""

from collections.abc import Sequence

from winnow.storage.records.values import RoundRecord
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.protocol import Answer
from winnow.tasks.rounds.generate import WantedTexts, have_outputs, plan_meetings
from winnow.tasks.rounds.generation_batch import GenerationBatch
from winnow.tasks.spec.sections.reuse import ONLY


class RoundsInFlight:
    """The rounds of a best-mean campaign that are planned and not recorded, as far as engines work on them.

    Texts are committed group by group as they come, whichever round they are of. Close it in any case: that
    ends all engines that are at work.
    """

    def __init__(self, campaign: CampaignSession) -> None:
        self._campaign = campaign
        self._stream = campaign.engines.stream(later=campaign.checked.judge_models)
        self._wanted: dict[int, WantedTexts] = {}  # by the number of the round
        self._asked: dict[int, tuple[WantedTexts, int]] = {}  # which group of whom, by its number

    def texts_of_first(self, rounds: Sequence[RoundRecord]) -> GenerationBatch:
        """All texts of the first of the rounds in flight, while those of the others are made as well.

        Safe to call again after an error; it generates only what is not stored.

        Raises:
            EngineDied, EngineTimeout: Transient; what was committed stays, and so does what engines were
                asked meanwhile.
            ServedModelDiffers: If a server that took another's place does not serve the same.
            LeaseLost: If another process took the campaign over.
        """
        if self._campaign.checked.spec.reuse == ONLY:  # nothing is asked, so that nothing is waited for
            return have_outputs(self._campaign, rounds[0], plan_meetings(self._campaign, rounds[0]))
        try:
            for round_ in rounds:
                if round_.number not in self._wanted:
                    self._begin(round_)
            first = self._wanted[rounds[0].number]
            self._stream.begin()
            for number, answers in self._stream.answered():
                self._store(number, answers)
            while not first.are_there:
                self._store(*self._stream.next_answers())
        except EngineError:
            self.finish_begun()
            raise
        del self._wanted[rounds[0].number]
        return first.batch()

    def finish_begun(self) -> None:
        """Wait for what engines are at work on and commit it; all else is asked for when wanted again."""
        for number, answers in self._stream.finish_begun():
            self._store(number, answers)
        self._wanted.clear()
        self._asked.clear()

    def close(self) -> None:
        """End the engines that are at work."""
        self._stream.close()

    def _begin(self, round_: RoundRecord) -> None:
        planned = plan_meetings(self._campaign, round_)
        wanted = WantedTexts(self._campaign, round_, planned, begun_after=round_.planned_after)
        self._wanted[round_.number] = wanted
        for place, number in enumerate(self._stream.add(wanted.groups)):
            self._asked[number] = wanted, place

    def _store(self, number: int, answers: Sequence[Answer]) -> None:
        wanted, place = self._asked.pop(number)
        wanted.store(place, answers)
