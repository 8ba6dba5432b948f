"""Notes on a real file: found again, written once, never half, never without end."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.tools.calling import call, refusal, results, start, until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "notes.jsonl"


def write(file: Path, text: str, request: str = "", **environment: str) -> object:
    return call(
        "notes.py", "write_note", {"text": text}, REA_TOOL_NOTES_FILE=str(file), REA_REQUEST_ID=request, **environment
    )


def found(file: Path, words: str, **args: object) -> list[str]:
    answer = call("notes.py", "search_notes", {"words": words, **args}, REA_TOOL_NOTES_FILE=str(file))
    assert isinstance(answer, dict)
    return [note["text"] for note in answer["notes"]]


def many(file: Path, texts: list[str], **environment: str) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("write_note", {"text": text}) for text in texts]
    results(start("notes.py", calls, REA_TOOL_NOTES_FILE=str(file), **environment))


def test_a_note_is_found_by_its_words_in_any_case_and_order(file: Path) -> None:
    many(file, ["The Filter was cleaned.", "The boiler leaks.", "Filter of the boiler ordered."])
    assert found(file, "boiler filter") == ["Filter of the boiler ordered."]
    assert found(file, "pump") == []


def test_the_newest_come_first_and_only_a_few(file: Path) -> None:
    many(file, [f"note {number}" for number in range(12)])
    assert found(file, "") == [f"note {number}" for number in (11, 10, 9, 8, 7)]
    assert found(file, "note", most=2) == ["note 11", "note 10"]
    answer = call("notes.py", "search_notes", {"words": "note"}, REA_TOOL_NOTES_FILE=str(file))
    assert isinstance(answer, dict) and answer["found"] == 12


def test_a_call_that_is_run_again_writes_nothing_twice(file: Path) -> None:
    assert write(file, "cleaned", "r-1") == {"kept": 1}
    assert write(file, "cleaned", "r-1") == {"kept": 1}
    assert write(file, "cleaned", "r-2") == {"kept": 2}


def test_notes_without_a_request_are_all_kept(file: Path) -> None:
    many(file, ["one", "one"])
    assert found(file, "one") == ["one", "one"]


def test_a_line_that_a_power_cut_left_half_costs_only_itself(file: Path) -> None:
    many(file, ["first", "second"])
    file.write_bytes(file.read_bytes()[:-9])
    write(file, "third")
    assert found(file, "") == ["third", "first"]


@pytest.mark.parametrize("rubbish", [b"\0\0\0\n", b"[1]\n", b'{"id": 7}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_what_a_stranger_wrote_is_passed_over(file: Path, rubbish: bytes) -> None:
    write(file, "mine")
    file.write_bytes(rubbish + file.read_bytes())
    assert found(file, "") == ["mine"]


def test_over_its_cap_the_older_half_goes_and_the_newest_stays(file: Path) -> None:
    texts = [f"note {number:03} {'x' * 80}" for number in range(40)]
    many(file, texts, REA_TOOL_NOTES_KIB="2")
    assert file.stat().st_size <= 2048
    kept = found(file, "note", most=10)
    assert kept[0] == texts[-1] and kept == texts[: -len(kept) - 1 : -1]
    assert sorted(os.listdir(file.parent)) == ["notes.jsonl", "notes.jsonl.lock"]


def test_a_writer_that_is_killed_never_leaves_a_file_that_cannot_be_read(file: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("write_note", {"text": f"n {at} {'x' * 50}"}) for at in range(1000)]
    process = start("notes.py", calls, REA_TOOL_NOTES_FILE=str(file), REA_TOOL_NOTES_KIB="1")
    assert process.stdout is not None
    process.stdout.readline()  # comes with the first block that is full, in the middle
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(found(file, "x")) >= 3
    write(file, "after", REA_TOOL_NOTES_KIB="1")
    assert found(file, "")[0] == "after"


def test_notes_side_by_side_are_all_kept(file: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("write_note", {"text": "side by side"})] * 10
    for process in [start("notes.py", calls, REA_TOOL_NOTES_FILE=str(file)) for _ in range(3)]:
        assert len(results(process)) == 10
    assert len([line for line in file.read_text().splitlines() if json.loads(line)]) == 30


def waiting() -> list[str]:
    """The locks that somebody waits for, as the kernel tells them."""
    return [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]


def test_a_writer_waits_for_the_one_before_it(file: Path) -> None:
    write(file, "first")
    with file.with_name(file.name + ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start("notes.py", [("write_note", {"text": "third"})], REA_TOOL_NOTES_FILE=str(file))
        try:
            until(lambda: any(f" {process.pid} " in line for line in waiting()))
            file.write_text(file.read_text() + json.dumps({"id": "", "at": 1.0, "text": "second"}) + "\n")
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert results(process) == [{"kept": 3}]
        finally:
            process.kill()
            process.wait()


def test_without_a_named_file_the_notes_are_in_the_state_folder(tmp_path: Path) -> None:
    call("notes.py", "write_note", {"text": "here"}, REA_STATE_DIR=str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["notes.jsonl", "notes.jsonl.lock"]


def test_a_place_and_a_cap_that_are_not_there_are_named(tmp_path: Path) -> None:
    assert "set REA_TOOL_NOTES_FILE" in refusal("notes.py", "write_note", {"text": "x"})
    said = refusal("notes.py", "write_note", {"text": "x"}, REA_STATE_DIR=str(tmp_path), REA_TOOL_NOTES_KIB="many")
    assert "REA_TOOL_NOTES_KIB='many' is not a number of KiB from 1 to 4096" in said


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.lock", "notes.jsonl.new"])
def test_a_link_that_another_tool_has_put_there_is_not_written_through(tmp_path: Path, name: str) -> None:
    theirs, state = tmp_path / "theirs", tmp_path / "state"
    theirs.write_text("what is theirs\n")
    state.mkdir()
    for number in range(10):  # so many that the next one has the file cut
        call("notes.py", "write_note", {"text": f"{number} " * 60}, REA_STATE_DIR=str(state), REA_TOOL_NOTES_KIB="1")
    (state / name).unlink(missing_ok=True)
    (state / name).symlink_to(theirs)
    for _ in range(10):
        calls: list[tuple[str, dict[str, object]]] = [("write_note", {"text": "mine " * 60})]
        with start("notes.py", calls, REA_STATE_DIR=str(state), REA_TOOL_NOTES_KIB="1") as writing:
            writing.communicate(timeout=30)
    assert theirs.read_text() == "what is theirs\n"


def test_a_note_of_an_impossible_time_costs_only_itself(file: Path) -> None:
    write(file, "kept")
    for at in ("1e300", "Infinity", "-1e20", "NaN"):
        with file.open("a") as notes:
            notes.write(f'{{"id":"","at":{at},"text":"strange"}}\n')
    assert found(file, "") == ["kept"]
