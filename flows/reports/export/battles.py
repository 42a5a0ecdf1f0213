"""Export duels in the format of LMArena's battles.

Columns, their order and the names of winners are those of the dataset chatbot_arena_conversations (LMSYS,
2023). FastChat's `clean_battle_data.py` writes this format, and its rating tools read it. One column is
added: `outcome`, the preference for model_a.
"""

from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy.orm import Session

from winnow.storage.json_types import Row
from winnow.storage.queries.exports import judged_duels
from winnow.tasks.engines.chat import Message, from_stored
from winnow.tasks.queries.views import Kind

KINDS: dict[str, Kind] = {
    "question_id": "text",
    "model_a": "text",
    "model_b": "text",
    "winner": "text",
    "judge": "text",
    "conversation_a": "conversation",
    "conversation_b": "conversation",
    "turn": "integer",
    "anony": "truth",
    "language": "text",
    "tstamp": "real",
    "outcome": "real",
}


def battles(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield one battle per duel with an outcome, in planned order.

    `question_id` is the example's key, `judge` the kind of judge, and `tstamp` the time of the duel's
    decision in seconds since the epoch. The winner "tie (bothbad)" never occurs, because no judge can answer
    that both outputs are bad.
    """
    return map(_battle, judged_duels(session, campaign_id))


def kinds_of(_: Iterable[str]) -> Mapping[str, Kind]:
    """The type of each column of battles."""
    return KINDS


def _battle(duel: Row) -> Row:
    return {
        "question_id": duel["example"],
        "model_a": duel["candidate"],
        "model_b": duel["candidate_b"],
        "winner": _winner(duel["outcome"]),
        "judge": duel["judge"],
        "conversation_a": _conversation(duel["prompt"], duel["text"]),
        "conversation_b": _conversation(duel["prompt_b"], duel["text_b"]),
        "turn": 1,
        # No judge sees which candidates the answers are from.
        "anony": True,
        "language": "unknown",
        "tstamp": duel["decided_at"].timestamp(),
        "outcome": duel["outcome"],
    }


def _winner(outcome: float) -> str:
    if outcome == 0.5:
        return "tie"
    return "model_a" if outcome > 0.5 else "model_b"


def _conversation(prompt: str | None, text: str | None) -> list[dict[str, str]]:
    asked = () if prompt is None else from_stored(prompt)
    said = () if text is None else (Message("assistant", text),)
    return [{"content": content, "role": role} for role, content in (*asked, *said)]
