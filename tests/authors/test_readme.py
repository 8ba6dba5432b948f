"""What the README shows can be used as it stands there: its files load, its commands parse, its tables lack no key."""

import hashlib
import re
import shlex
from pathlib import Path

import msgspec
import pytest

from rea_edge.cli.parser import parser
from rea_edge.config import load
from rea_edge.config.client import client_settings
from rea_edge.emulated.devices.__main__ import parser as device_parser
from rea_edge.rules import NodeGate
from rea_edge.tool import KEYS
from rea_edge.toolhost.load import declarations
from rea_edge.wire import CallRequest, CtlRequest, NodeRequest, QueryRequest, Request, SayRequest, TaskRequest
from tests.authors.test_page import ROOT

README = (ROOT / "README.md").read_text()
REQUESTS: dict[str, type[Request]] = {
    "task": TaskRequest,
    "call": CallRequest,
    "query": QueryRequest,
    "ctl": CtlRequest,
    "say": SayRequest,
    "node": NodeRequest,
}
MORE_CONFIG = '[broker]\nurl = "mqtt://127.0.0.1:1883"\n'


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", README, re.S | re.M)


def commands() -> list[list[str]]:
    """Each command of the shell blocks, as words; a redirection and what is behind it is left out."""
    found: list[list[str]] = []
    for line in "".join(blocks("sh")).splitlines():
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word in {"&&", ";", "&", ">"}:
                found, words = [*found, words], []
            else:
                words.append(word)
    return [words for words in found if words]


def section(heading: str) -> str:
    """From a heading to the next."""
    return re.split(r"\n##+ ", README.partition(f"# {heading}\n")[2])[0]


def tables(kind: str) -> list[str]:
    """The TOML blocks of one kind of file: the first line of each says in a comment which it is."""
    return [block for block in blocks("toml") if re.match(rf"# [^\n]*{kind}", block)]


def at_home(text: str, folder: Path) -> str:
    """The same with its secrets and passwords in this folder, where they are."""
    for name in set(re.findall(r'"(?:/etc/rea-edge|/home/ann)/([\w./-]*(?:key|keys/\w+|password))"', text)):
        file = folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(hashlib.sha256(name.encode()).hexdigest())  # a key for each: none may be another's
        file.chmod(0o600)
    return re.sub(r'"(?:/etc/rea-edge|/home/ann)/', f'"{folder}/', text)


CONFIGS, TOOL_FILES, CLIENT_FILES = tables(r"config\.toml"), tables("a tool file"), tables(r"client\.toml")
# The one of the page for authors is shown by its name above it, and run by the page's own test.
PAGE_CONFIG = '[node]\nid = "desk"\n'


def test_each_toml_block_says_which_file_it_is_of() -> None:
    unsaid = [
        block
        for block in blocks("toml")
        if block not in {*CONFIGS, *TOOL_FILES, *CLIENT_FILES} and not block.startswith(PAGE_CONFIG)
    ]
    assert unsaid == [], "begin it with `# in config.toml`, `# NAME.toml, a tool file` or `# .../client.toml`"
    assert CONFIGS and TOOL_FILES and CLIENT_FILES


@pytest.mark.parametrize("text", CONFIGS, ids=lambda text: re.sub(r"\W+", "-", text[:60]))
def test_a_configuration_is_taken_as_it_is_shown(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(at_home(text, tmp_path) + (MORE_CONFIG if "[broker]" not in text else ""))
    if "approvers" in text and "[access]" not in text:
        file.write_text(file.read_text() + '[access]\nidentity = "broker"\n')
    assert load(file, {"HOME": str(tmp_path)}).files == (file,)


@pytest.mark.parametrize("text", TOOL_FILES, ids=lambda text: text.split(",")[0])
def test_a_tool_file_declares_what_it_shows(text: str, tmp_path: Path) -> None:
    file = tmp_path / text.split()[1].rstrip(",")
    file.write_text(text)
    found = declarations(str(file), 10.0)
    assert [one.name for one in found] == re.findall(r"^\[(\w+)\]", text, re.M)


@pytest.mark.parametrize("text", CLIENT_FILES)
def test_a_client_file_is_taken_as_it_is_shown(text: str, tmp_path: Path) -> None:
    file = tmp_path / ".config" / "rea-edge" / "client.toml"
    file.parent.mkdir(parents=True)
    file.write_text(at_home(text, tmp_path))
    assert client_settings({}, {"HOME": str(tmp_path)}).who == "ann"


@pytest.mark.parametrize("words", [words for words in commands() if words[0].endswith("rea-edge")], ids=" ".join)
def test_a_command_can_be_typed(words: list[str]) -> None:
    parser().parse_args(words[1:])


@pytest.mark.parametrize("words", [words for words in commands() if "rea_edge.emulated.devices" in words], ids=" ".join)
def test_a_simulated_device_can_be_started(words: list[str]) -> None:
    device_parser().parse_args(words[3:])


@pytest.mark.parametrize("words", [words for words in commands() if words[0] == "mosquitto_pub"], ids=" ".join)
def test_a_request_sent_by_hand_is_one(words: list[str]) -> None:
    topic, payload = words[words.index("-t") + 1], words[words.index("-m") + 1]
    msgspec.json.decode(payload, type=REQUESTS[topic.split("/")[5]])


THERE_ARE = sorted(re.findall(r"^    ([a-z]+)\s", parser().format_help(), re.M))


@pytest.mark.parametrize("command", THERE_ARE)
def test_a_command_says_in_its_help_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    assert re.search(r"\n\n[A-Z][^\n]+", capsys.readouterr().out.partition("options:")[0])


def test_every_command_there_is_is_named_and_no_other() -> None:
    there_are = set(THERE_ARE)
    named = set(re.findall(r"`rea-edge ([a-z]+)", README))
    typed = {words[1] for words in commands() if words[0].endswith("rea-edge")}
    assert (named | typed) - there_are == set()
    besides = set(re.findall(r"`([a-z]+)`", section("The command line")))
    assert there_are - named - typed - besides == set()


def test_the_table_of_declarations_lacks_no_key() -> None:
    assert [key for key in KEYS if f"`{key}" not in section("A tool")] == []


def test_the_table_of_the_gate_lacks_no_key() -> None:
    assert [key for key in NodeGate.__struct_fields__ if f"\n{key} = " not in section("The gate")] == []


def test_each_setting_of_a_pack_is_one_that_its_file_reads() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", section("Shipped tools"), re.M)
    assert len(rows) > 10
    for pack, settings in rows:
        (file,) = (ROOT / "tools").glob(f"{pack}.*")
        for name in re.findall(r"`([A-Z_]+)", settings):
            assert name in file.read_text(), (pack, name)


def test_each_link_leads_to_a_heading() -> None:
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", README, flags=re.S | re.M), re.M)
    anchors = [re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert len(set(anchors)) == len(anchors)
    assert [link for link in re.findall(r"\]\(#([^)]*)\)", README) if link not in anchors] == []
    assert [path for path in re.findall(r"\]\(([^#)][^)]*)\)", README) if not (ROOT / path).exists()] == []


def test_no_line_but_a_table_is_wider_than_the_code() -> None:
    assert [line for line in README.splitlines() if len(line) > 130 and not line.startswith("|")] == []
