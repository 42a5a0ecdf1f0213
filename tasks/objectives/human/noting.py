"""Storing stars and notes that readers give to outputs."""

from winnow.storage.engine.database import Database
from winnow.storage.records.notes import NoteRecord, set_note
from winnow.tasks.campaign.lease import now
from winnow.tasks.errors import WinnowError
from winnow.tasks.objectives.human.annotating import require_name

LONGEST_NOTE = 1_000
"""Characters of a note."""
UNNAMED = "a reader"
"""Stored as the author if a reader gave no name."""


def take_note(database: Database, comparison_id: int, *, is_starred: bool, text: str, annotator: str) -> None:
    """Store a star, a note or both in place of those that were there; without either they are removed.

    Args:
        database: The database that holds the comparison.
        comparison_id: Id of the comparison whose outputs are noted.
        is_starred: Whether they get a star.
        text: The note; can be empty.
        annotator: Name of the reader.

    Raises:
        WinnowError: If the note is too long, or the name cannot be shown.
    """
    require_name(annotator)
    if len(text) > LONGEST_NOTE:
        raise WinnowError(f"the note has {len(text):,} characters; shorten it to {LONGEST_NOTE:,}")
    note = NoteRecord(is_starred=is_starred, text=text.strip(), annotator=annotator)
    with database.writing() as session:
        set_note(session, comparison_id, note, now())
