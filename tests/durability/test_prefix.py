"""A run whose journal no longer adds up to what was sent ends, instead of sending something else."""

import sqlite3
from pathlib import Path

import pytest

from rea_edge.store.rows import crc_of
from tests.durability.test_borders import ledger, shell

THIRD_QUESTION_IS_OUT = 30  # the border at which the shell is killed


def rewrite(folder: Path, kinds: str, old: bytes, new: bytes) -> int:
    """Change bytes in the journal's events of some kinds, with the right CRC; gives how many events had them."""
    db = sqlite3.connect(folder / "state" / "state.db", isolation_level=None)
    try:
        rows = db.execute("SELECT run, seq, body, at FROM event ORDER BY seq").fetchall()
        marks = [f'"kind":"{kind}"'.encode() for kind in kinds.split()]
        hits = [row for row in rows if old in row[2] and any(mark in row[2] for mark in marks)]
        for run, seq, body, at in hits:
            columns = (run, seq, body.replace(old, new), at)
            db.execute(
                "UPDATE event SET body = ?, crc = ? WHERE run = ? AND seq = ?",
                (columns[2], crc_of("event", columns), run, seq),
            )
        return len(hits)
    finally:
        db.close()


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        pytest.param("begun", b"do it", b"do At", id="the goal"),
        pytest.param("begun moved", b'"ask":""', b'"ask":"\\"top_k\\":1"', id="what constrains every answer"),
        pytest.param("answered", b'"arguments":"{}"', b'"arguments":"{ }"', id="the arguments the model gave"),
        pytest.param("answered", b'"content":""', b'"content":"ab"', id="its words"),
        pytest.param("asked", b"true", b"null", id="a result"),
    ],
)
def test_a_run_whose_journal_was_altered_ends_and_asks_nothing_more(
    tmp_path: Path, kind: str, old: bytes, new: bytes
) -> None:
    assert shell(tmp_path, THIRD_QUESTION_IS_OUT) is None
    before = ledger(tmp_path, "asked")
    assert rewrite(tmp_path, kind, old, new)
    told = shell(tmp_path)
    assert told is not None and told.run.ended is not None
    assert (told.run.ended.outcome, told.run.ended.error) == ("failed", "internal")
    assert "journal was altered" in told.run.ended.reason
    assert ledger(tmp_path, "asked") == before


def test_a_run_whose_journal_is_as_it_was_written_goes_on(tmp_path: Path) -> None:
    assert shell(tmp_path, THIRD_QUESTION_IS_OUT) is None
    assert rewrite(tmp_path, "begun", b"do it", b"do it")
    told = shell(tmp_path)
    assert told is not None and told.run.ended is not None
    assert told.run.ended.outcome == "achieved"
