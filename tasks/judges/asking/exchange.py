"""Run judges on subjects round by round: collect their calls, take in the replies."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from winnow.tasks.judges.asking.calls import JudgeCall, Replies, Reply
from winnow.tasks.judges.protocol import Duel, Judge, Sample

Subject = TypeVar("Subject", bound=Sample | Duel)


class Exchange(Generic[Subject]):
    """Calls that judges need; the caller runs `next_calls` and passes the replies to `take`.

    Equal calls have one reply, for any judge or subject.

    Args:
        replies: Replies that are already available, by call.
    """

    def __init__(self, replies: Replies) -> None:
        self.replies: dict[JudgeCall, Reply] = dict(replies)
        """All replies so far."""
        self._in_hand: set[JudgeCall] = set()
        self._waiting: list[tuple[Judge[Subject], Subject, Sequence[JudgeCall]]] = []

    @property
    def is_done(self) -> bool:
        """Whether every judge has all replies that it needs."""
        return not self._waiting

    def begin(self, judges: Sequence[Judge[Subject]], subjects: Sequence[Subject]) -> None:
        """Add each judge that uses models, for each subject."""
        self._waiting += [(judge, subject, ()) for judge in judges if judge.models for subject in subjects]

    def next_calls(self) -> list[JudgeCall]:
        """Calls that are needed now and not in progress.

        A call may occur twice if several parts of a judge need it.
        """
        new: list[JudgeCall] = []
        waiting, self._waiting = self._waiting, []
        for judge, subject, calls in waiting:
            if all(call in self.replies for call in calls):
                calls = [call for call in judge.calls(subject, self.replies) if call not in self.replies]
            if calls:
                self._waiting.append((judge, subject, calls))
                new += [call for call in calls if call not in self._in_hand]
                self._in_hand.update(calls)
        return new

    def take(self, replies: Mapping[JudgeCall, Reply]) -> None:
        """Add replies to calls."""
        self.replies |= replies
        self._in_hand -= replies.keys()
