"""What can be read of a damaged state is read, proved row by row; what cannot is named, and nothing is made up."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from rea_edge.errors import StoreBusy, StoreUnusable
from rea_edge.store import Store
from rea_edge.store.rescue import Rescue, rescue
from rea_edge.store.survey import survey
from tests.store.children import command, read_until, running
from tests.store.test_quarantine import CLEAN, WAL, edit, fill, kill_while_open, overwrite

PAGE = 4096


def rows_of(found: Rescue) -> set[tuple[str, object]]:
    return {(table, columns) for table, rows in found.rows.items() for columns in rows.values()}


def lost_rows(found: Rescue) -> set[tuple[str, object]]:
    return {(table, key) for table, rows in found.rows.items() for key in rows}


@pytest.fixture
def filled(folder: Path) -> Path:
    fill(folder)
    return folder


def test_a_whole_state_is_given_row_by_row_and_nothing_is_missing(filled: Path) -> None:
    before = {path.name: path.read_bytes() for path in filled.iterdir()}
    found = rescue(filled)
    assert (found.faults, found.missing(), found.carved) == ([], [], set())
    assert Counter(table for table, _ in rows_of(found)) == {
        "meta": 1, "run": 3, "request": 3, "event": 12, "outbox": 3,
    }  # fmt: skip
    assert before == {path.name: path.read_bytes() for path in filled.iterdir()}


def test_pages_that_are_garbage_cost_what_stood_in_them_and_no_more(filled: Path, tmp_path: Path) -> None:
    truth = rows_of(rescue(filled))
    content = (filled / "state.db").read_bytes()
    at, lost = random.Random(3), Counter[tuple[str, object]]()
    for page in range(len(content) // PAGE):
        place = tmp_path / f"page-{page}.db"
        place.write_bytes(content[: page * PAGE] + at.randbytes(PAGE) + content[(page + 1) * PAGE :])
        found = rescue(place)
        assert rows_of(found) <= truth, f"page {page}: a row that nobody wrote"
        lost.update(truth - rows_of(found))
        if page == 0:
            assert rows_of(found) == truth, "the head of the file is not needed"
    assert max(lost.values()) <= 4, "a row is lost only with a page that it stands in"
    assert len(lost) == len(truth), "the test would prove nothing if the pages held nothing"


def test_no_flipped_bit_gives_a_row_that_nobody_wrote(filled: Path, tmp_path: Path) -> None:
    truth = rows_of(rescue(filled))
    content = (filled / "state.db").read_bytes()
    at, lost = random.Random(5), 0
    for number in range(150):
        flipped = bytearray(bytes(PAGE) + content[PAGE:])  # without its head, so that only the pages are left to read
        flipped[at.randrange(PAGE, len(content))] ^= 1 << at.randrange(8)
        place = tmp_path / f"flip-{number}.db"
        place.write_bytes(flipped)
        found = rows_of(rescue(place))
        assert found <= truth
        lost += found != truth
    assert lost > 50, "the test would prove nothing if the flips met nothing"


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_of_a_cut_file_the_part_that_is_there_is_read_and_the_rest_is_named(filled: Path, share: float) -> None:
    truth = rows_of(rescue(filled))
    overwrite(filled / "state.db", lambda old: old[: int(len(old) * share)])
    found = rescue(filled)
    assert {("run", row) for row in (1, 2, 3)} == {(table, key[0]) for table, key in lost_rows(found) if table == "run"}
    assert rows_of(found) < truth and found.faults and found.missing()
    assert found.carved


@pytest.mark.parametrize(
    "case", ["the WAL deleted", "the WAL emptied", "the WAL garbage", "the WAL cut", "the main file gone"]
)
def test_of_a_file_and_its_wal_each_is_read_without_the_other(folder: Path, case: str) -> None:
    kill_while_open(folder)
    truth = rows_of(rescue(folder))
    WAL[case][0](folder)
    found = rescue(folder)
    runs = [columns for table, columns in rows_of(found) if table == "run"]
    assert len(runs) == {"the main file gone": 4, "the WAL cut": 2}.get(case, 0)
    # Of what was written again and again, a cut WAL has an older form.
    assert {row for row in rows_of(found) if row[0] != "run"} <= truth | {
        row for row in rows_of(found) if row[0] == "outbox"
    }
    assert found.faults or found.missing()
    if case == "the main file gone":
        assert {row for row in rows_of(found) if row[0] in {"run", "event", "request"}} == {
            row for row in truth if row[0] in {"run", "event", "request"}
        }


def test_what_was_set_aside_is_read_like_any_other(filled: Path) -> None:
    truth = rows_of(rescue(filled))
    overwrite(filled / "state.db", lambda old: bytes(PAGE) + old[PAGE:])
    Store.open(filled).close()
    assert rows_of(rescue(filled / "broken-1")) == truth
    assert survey(filled).broken == ("broken-1",)


def test_a_row_whose_check_sum_is_wrong_is_named_and_not_given(filled: Path) -> None:
    edit(filled, "update event set body = 'x' where run = 2 and seq = 1")
    found = rescue(filled)
    assert ("event", (2, 1)) not in lost_rows(found)
    assert any("[2, 1]" in fault for fault in found.faults)
    assert "of run 2 these events are missing: 1" in found.missing()


def test_where_there_is_no_state_that_is_said(tmp_path: Path) -> None:
    for look in (rescue, survey):
        with pytest.raises(StoreUnusable, match=r"state\.db"):
            look(tmp_path)
        with pytest.raises(StoreUnusable, match="nowhere"):
            look(tmp_path / "nowhere")


def test_a_survey_says_what_is_in_a_state_and_changes_nothing(filled: Path) -> None:
    before = {path.name: path.read_bytes() for path in filled.iterdir()}
    found = survey(filled)
    assert (found.wrong, found.unreadable, found.clean, found.lost) == (None, (), True, None)
    assert found.runs == {"accepted tasks": 2, "ended tasks": 1} and found.messages == 3
    assert (found.epoch, found.wal_bytes, found.newest) == (found.sentinel, None, 3)
    assert before == {path.name: path.read_bytes() for path in filled.iterdir()}


@pytest.mark.parametrize("case", [name for name in CLEAN if name != "missing"])
def test_a_survey_says_what_the_next_start_will_say(filled: Path, case: str) -> None:
    CLEAN[case][0](filled)
    wrong = survey(filled).wrong
    store = Store.open(filled)
    lost = store.lost
    store.close()
    assert wrong is not None and lost is not None
    blank = {"emptied", "a blank database", "a zeroed first page"}
    assert wrong == lost or case in blank, (wrong, lost)


def test_a_state_that_a_daemon_has_is_busy_and_is_left_to_it(folder: Path) -> None:
    with running(command("hold", folder)) as child:
        read_until(child, "open None")
        with pytest.raises(StoreBusy, match=f"process {child.pid}$"):
            survey(folder)
        with pytest.raises(StoreBusy):
            survey(folder / "state.db")
        with pytest.raises(StoreBusy):
            Store.open(folder, busy_s=0.0)
        shutil.copytree(folder, folder.parent / "copy")
        assert survey(folder.parent / "copy").wrong is None
