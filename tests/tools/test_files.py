"""Files within the folders that were named, and every way out of them that a path, a link or a name might be."""

import os
from pathlib import Path

import pytest

from tests.tools.calling import call, refusal

Args = dict[str, object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    (made / "old").mkdir(parents=True)
    (made / "messages").write_text("".join(f"line {number}\n" for number in range(1, 51)))
    (made / "old/deep.txt").write_text("below")
    (tmp_path / "secret").write_text("never")
    (tmp_path / "logs2").mkdir()
    return made


def read(folder: Path, name: str, args: Args) -> Args:
    found = call("files.py", name, {"folder": "logs", **args}, REA_TOOL_FILES_FOLDERS=f"logs={folder}")
    assert isinstance(found, dict)
    return found


def refused(folder: Path, name: str, args: Args) -> str:
    return refusal("files.py", name, {"folder": "logs", **args}, REA_TOOL_FILES_FOLDERS=f"logs={folder}")


def test_a_folder_is_listed_with_kinds_and_sizes(folder: Path) -> None:
    os.symlink("messages", folder / "link")
    os.mkfifo(folder / "pipe")
    found = read(folder, "list_files", {})
    assert found["total"] == 4
    assert found["entries"] == [
        {"name": "link", "kind": "link", "bytes": 8},
        {"name": "messages", "kind": "file", "bytes": 391},
        {"name": "old", "kind": "folder", "bytes": (folder / "old").stat().st_size},
        {"name": "pipe", "kind": "other", "bytes": 0},
    ]
    assert read(folder, "list_files", {"path": "old"})["total"] == 1


def test_a_large_folder_is_cut_and_counted(folder: Path) -> None:
    for number in range(150):
        (folder / f"f{number}").touch()
    found = read(folder, "list_files", {})
    entries = found["entries"]
    assert isinstance(entries, list)
    assert found["total"] == 152 and len(entries) == 100


def test_a_text_is_read_on_from_where_it_was_cut_without_a_letter_lost(folder: Path) -> None:
    whole = "x" + "äöü€" * 3000  # a block ends in the middle of a letter
    (folder / "long.txt").write_text(whole)
    text, start = "", 0
    while True:
        piece = read(folder, "read_file", {"path": "long.txt", "start": start})
        assert piece["content"] == "text" and piece["bytes"] == len(whole.encode())
        text += str(piece["text"])
        if piece["next"] is None:
            break
        assert isinstance(piece["next"], int) and piece["next"] > start
        start = piece["next"]
    assert text == whole


def test_a_start_in_the_middle_of_a_letter_gives_the_whole_ones(folder: Path) -> None:
    (folder / "euro").write_text("€€")
    assert read(folder, "read_file", {"path": "euro", "start": 1})["text"] == "€"
    assert read(folder, "read_file", {"path": "euro", "start": 99})["text"] == ""


@pytest.mark.parametrize("body", [b"\0\1\2", b"text\0text", b"\xff\xfe\xfd", b"\x89PNG\r\n" * 3000])
def test_what_is_no_text_is_said_to_be_binary_and_not_shown(folder: Path, body: bytes) -> None:
    (folder / "blob").write_bytes(body)
    assert read(folder, "read_file", {"path": "blob"}) == {
        "content": "binary", "bytes": len(body), "text": None, "next": None,
    }  # fmt: skip
    assert read(folder, "tail_file", {"path": "blob"}) == {"content": "binary", "bytes": len(body), "lines": []}


def test_the_last_lines_are_whole_lines_also_of_a_large_file(folder: Path) -> None:
    assert read(folder, "tail_file", {"path": "messages", "lines": 2})["lines"] == ["line 49", "line 50"]
    with (folder / "large").open("w") as file:
        file.writelines(f"é {number}\n" for number in range(100_000))
    lines = read(folder, "tail_file", {"path": "large", "lines": 100})["lines"]
    assert lines == [f"é {number}" for number in range(99_900, 100_000)]
    (folder / "one").write_text("x" * 20_000)
    (only,) = read(folder, "tail_file", {"path": "one"})["lines"]  # type: ignore[misc]  # it is a list
    assert only == "x" * 8192


@pytest.mark.parametrize(
    "path",
    ["../secret", "old/../../secret", "/etc/passwd", "./messages", "old//deep.txt", "..", "old/", "../logs2"],
)
@pytest.mark.parametrize("name", ["read_file", "tail_file", "list_files"])
def test_a_path_that_is_not_plain_is_refused(folder: Path, name: str, path: str) -> None:
    assert "is not a plain path inside the folder" in refused(folder, name, {"path": path})


@pytest.mark.parametrize("name", ["read_file", "tail_file"])
def test_no_symbolic_link_is_followed_wherever_it_stands(folder: Path, name: str) -> None:
    os.symlink(folder.parent / "secret", folder / "last")
    os.symlink(folder.parent, folder / "up")
    os.symlink("old", folder / "inside")
    for path in ("last", "up/secret", "inside/deep.txt"):
        assert "leads over a symbolic link" in refused(folder, name, {"path": path})
    assert "leads over a symbolic link" in refused(folder, "list_files", {"path": "up"})


def test_what_is_neither_file_nor_folder_is_not_even_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")  # to open it for reading would wait for a writer
    for path in ("pipe", "old"):
        assert f"'{path}' in '{path}' is no plain file" in refused(folder, "read_file", {"path": path})
    assert "'messages' in 'messages' is no folder" in refused(folder, "list_files", {"path": "messages"})
    assert "FileNotFoundError" in refused(folder, "read_file", {"path": "none"})


def test_a_folder_that_is_itself_a_link_is_the_owners_word(folder: Path) -> None:
    os.symlink(folder, folder.parent / "alias")
    assert read(folder.parent / "alias", "read_file", {"path": "old/deep.txt"})["text"] == "below"


def test_only_named_folders_are_there_and_without_any_it_says_what_to_set(folder: Path) -> None:
    args: Args = {"folder": "etc", "path": "passwd"}
    said = refusal("files.py", "read_file", args, REA_TOOL_FILES_FOLDERS=f"logs={folder}, old={folder}/old")
    assert said == "NotAllowed: 'etc' is no folder that may be read; there is logs, old"
    assert "set REA_TOOL_FILES_FOLDERS=" in refusal("files.py", "read_file", args)


@pytest.mark.parametrize("setting", ["logs", "logs=relative", "Logs=/x", "a=/x,a=/y", "=/x"])
def test_a_setting_that_is_wrong_is_named_when_the_file_loads(setting: str) -> None:
    said = refusal("files.py", "list_files", {"folder": "logs"}, REA_TOOL_FILES_FOLDERS=setting)
    assert "ValueError: REA_TOOL_FILES_FOLDERS: " in said and "name=/absolute/folder" in said
