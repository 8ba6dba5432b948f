"""What was acknowledged survives a kill; errors of the disk stop the store, a full one does not; one flush a commit."""

import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rea_edge.store import Store
from tests.store.children import command, output_of, read_until, running

Opener = Callable[..., Store]

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="NOT SHOWN: strace is not installed")


def missing_from(store: Store, said: list[str]) -> list[str]:
    """What a child said it had committed and the store does not have."""
    missing = []
    for line in said:
        match line.split():
            case ["run", row]:
                run = store.run(int(row))
                if run is None or run.request != b"request":
                    missing.append(line)
            case ["event", row, seq]:
                if store.events(int(row), after=int(seq))[:1] != [f"{row}.{seq}".encode() * 200]:
                    missing.append(line)
            case ["ended", row]:
                run = store.run(int(row))
                if run is None or run.state != "ended":
                    missing.append(line)
    return missing


@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_nothing_that_was_acknowledged_is_lost_by_a_kill_at_any_moment(folder: Path, kills: int) -> None:
    at = random.Random(7)
    seen = 0
    for number in range(kills):
        place = folder / f"{number}"
        with running(command("commit", place, "1000")) as child:
            read_until(child, "open None")
            time.sleep(at.uniform(0.0, 0.25))  # the moment of the kill is what is drawn
            child.send_signal(signal.SIGKILL)
            assert child.stdout is not None
            said = child.stdout.read().splitlines()
        store = Store.open(place)
        try:
            assert (store.lost, store.was_clean) == (None, False)
            assert missing_from(store, said) == []
            runs = store.runs(5000)
            unsaid = len(runs) - sum(line.startswith("run") for line in said)
            assert unsaid in {0, 1}  # a commit that the kill met before it was said
            replies = [message.topic for message in store.pull() if message.kind == "reply"]
            assert replies == [f"reply/{number}" for number in range(len(runs))]
        finally:
            store.close()
        seen += len(said)
    assert seen > 5 * kills


def test_a_state_killed_again_and_again_goes_on_where_it_was(folder: Path, opened: Opener) -> None:
    for _ in range(3):
        with running(command("hold", folder)) as child:
            read_until(child, "open None")
    store = opened(folder)
    with store.transaction() as tx:
        tx.add_run("task", "me", "t1", "sha256:0", b"", None)
    assert (store.lost, len(store.queue())) == (None, 1)


def test_a_limit_on_file_size_breaks_the_store_and_everything_acknowledged_is_there(
    folder: Path, opened: Opener
) -> None:
    said = output_of(command("short_of_room", folder, "400000"))
    *runs, failed, then = said
    assert failed.startswith("StoreBroken") and then.startswith("then StoreBroken"), said[-2:]
    store = opened(folder)
    assert store.lost is None
    assert len(runs) <= len(store.queue()) <= len(runs) + 1 and len(runs) > 10


@needs_strace
@pytest.mark.parametrize(
    ("call", "error", "when"),
    [("fdatasync", "EIO", 9), ("pwrite64", "EIO", 60), ("pwrite64", "ENOSPC", 60), ("fdatasync", "ENOSPC", 12)],
)
def test_an_error_of_the_disk_is_said_and_costs_nothing_acknowledged(
    folder: Path, opened: Opener, tmp_path: Path, call: str, error: str, when: int
) -> None:
    inject = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", f"trace={call}"]
    inject += ["-e", f"inject={call}:error={error}:when={when}"]
    said = output_of([*inject, *command("until_it_fails", folder)])
    assert "INJECTED" in (tmp_path / "trace").read_text()
    runs = [line for line in said if line.startswith("run")]
    if error == "ENOSPC" and call == "pwrite64":
        assert said[-2].startswith("StoreFull") and said[-1] == f"then {len(runs)}", said[-2:]
    else:
        assert said[-2].startswith("StoreBroken") and said[-1].startswith("then StoreBroken"), said[-2:]
    store = opened(folder)
    assert store.lost is None
    assert len(runs) <= len(store.queue()) <= len(runs) + 1


@needs_strace
@pytest.mark.parametrize(
    ("file", "call", "error", "said"),
    [
        ("state.db", "pread64", "EIO:when=2+", "StoreUnusable"),
        ("state.db", "pread64", "EIO:when=6+", "StoreUnusable"),
        ("state.db-wal", "pwrite64", "EIO", "StoreUnusable"),
        ("state.db-wal", "pwrite64", "ENOSPC", "StoreFull"),
        ("state.db", "openat", "EACCES", "StoreUnusable"),
        ("lock", "openat", "EROFS", "StoreUnusable"),
    ],
)
def test_an_error_of_the_disk_at_the_start_moves_nothing(
    folder: Path, opened: Opener, tmp_path: Path, file: str, call: str, error: str, said: str
) -> None:
    Store.open(folder).close()
    inject = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-P", str(folder / file)]
    inject += ["-e", f"trace={call},read", "-e", f"inject={call}:error={error}"]
    if call == "pread64":
        inject += ["-e", "inject=read:error=EIO"]  # the disk does not give it to anybody
    lines = output_of([*inject, *command("hold", folder)])
    assert "INJECTED" in (tmp_path / "trace").read_text()
    assert len(lines) == 1 and lines[0].startswith(f"{said} {folder}"), lines
    assert not list(folder.glob("broken-*"))
    assert opened(folder).lost is None


@needs_strace
def test_a_commit_costs_one_flush(folder: Path, tmp_path: Path) -> None:
    rounds = 40
    trace = tmp_path / "trace"
    calls = "trace=fsync,fdatasync,sync_file_range,stat,newfstatat,statx"
    output_of(["strace", "-f", "-qq", "-o", str(trace), "-e", calls, *command("steady", folder, str(rounds))])
    text = trace.read_text()
    between = text[text.index("/mark-begin") : text.index("/mark-end")]
    assert len(re.findall(r"\b(?:fsync|fdatasync|sync_file_range)\(", between)) == rounds


def test_the_wal_stays_small_and_one_large_transaction_does_not_break_the_store(store: Store) -> None:
    with store.transaction() as tx:
        run, _ = tx.add_run("task", "me", "t1", "sha256:0", b"", None)
        tx.append(run.row, 0, [b"x" * 60_000] * 100, None)
    assert store.wal_bytes() <= 4 << 20
    with store.transaction() as tx:
        tx.append(run.row, 100, [b"x"], None)
    store.idle()
    assert store.event_count(run.row) == 101
