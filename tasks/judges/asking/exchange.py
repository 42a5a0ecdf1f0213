"""The exchange of judges with their models about some subjects: what is asked, until nothing is wanted."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from winnow.tasks.judges.asking.calls import JudgeCall, Replies, Reply
from winnow.tasks.judges.protocol import Duel, Judge, Sample

Subject = TypeVar("Subject", bound=Sample | Duel)


class Exchange(Generic[Subject]):
    """The calls that judges want; whoever makes them takes `next_calls` and hands in the replies.

    Equal calls have one reply, whichever judge or subject they are for.

    Args:
        replies: Replies that are known beforehand.
    """

    def __init__(self, replies: Replies) -> None:
        self.replies: dict[JudgeCall, Reply] = dict(replies)
        """All replies so far."""
        self._in_hand: set[JudgeCall] = set()
        self._waiting: list[tuple[Judge[Subject], Subject, Sequence[JudgeCall]]] = []

    @property
    def is_done(self) -> bool:
        """Whether no call waits for its reply."""
        return not self._waiting

    def begin(self, judges: Sequence[Judge[Subject]], subjects: Sequence[Subject]) -> None:
        """Have each judge ask about each subject."""
        self._waiting += [(judge, subject, ()) for judge in judges if judge.models for subject in subjects]

    def next_calls(self) -> list[JudgeCall]:
        """The calls that are wanted now and are not in hand; parts of a judge may want the same one twice."""
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
        """Take note of the replies to some calls."""
        self.replies |= replies
        self._in_hand -= replies.keys()
