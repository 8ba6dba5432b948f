"""Where a command finds its broker, node and name, and which source wins."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rea_edge.config.client import Client, client_settings
from rea_edge.errors import ConfigInvalid

DAEMON = """
[node]
id = "boiler-1"
[broker]
url = "mqtt://127.0.0.1:1999"
root = "plant/v1"
username = "boiler-1"
password_file = "daemon.secret"
client_id = "boiler-1"
[limits]
nonsense = "a client does not mind"
"""
OWN = """
who = "ann"
[broker]
url = "mqtt://127.0.0.1:1884"
username = "ann.login"
password_file = "own.secret"
"""


@pytest.fixture
def daemon_file(tmp_path: Path) -> str:
    (tmp_path / "config.toml").write_text(DAEMON)
    (tmp_path / "daemon.secret").write_text("daemon's\n")
    return str(tmp_path / "config.toml")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def own_file(home: Path) -> Path:
    folder = home / ".config/rea-edge"
    folder.mkdir(parents=True)
    (folder / "client.toml").write_text(OWN)
    (folder / "own.secret").write_text("own\n")
    return folder / "client.toml"


def settle(home: Path, *, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Client:
    return client_settings(flags or {}, {"HOME": str(home), "USER": "login-name", **(environ or {})})


def password(client: Client) -> str | None:
    return client.broker.password.reveal() if client.broker.password else None


def test_with_nothing_given_it_is_the_broker_on_this_board_and_the_user(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("[node]\nid = 'n'\n")
    found = settle(home, flags={"config": str(tmp_path / "empty.toml")})
    assert (found.broker.url, found.node, found.who) == ("mqtt://127.0.0.1:1883", "n", "login-name")


def test_the_daemons_file_gives_broker_login_and_node_but_not_its_session(home: Path, daemon_file: str) -> None:
    found = settle(home, flags={"config": daemon_file})
    assert (found.broker.url, found.broker.root, found.node) == ("mqtt://127.0.0.1:1999", "plant/v1", "boiler-1")
    assert (found.who, password(found), found.broker.client_id) == ("boiler-1", "daemon's", None)


def test_each_source_wins_over_those_behind_it(home: Path, daemon_file: str, own_file: Path) -> None:
    assert own_file.is_file()
    behind = settle(home, environ={"REA_EDGE_CONFIG": daemon_file})
    assert (behind.who, behind.node, behind.broker.url) == ("ann", "boiler-1", "mqtt://127.0.0.1:1884")
    environ = {"REA_EDGE_CONFIG": daemon_file, "REA_EDGE_WHO": "bob", "REA_EDGE_NODE": "env-node"}
    assert settle(home, environ=environ).who == "bob"
    front = settle(home, flags={"who": "cat", "node": "flag-node"}, environ=environ)
    assert (front.who, front.node) == ("cat", "flag-node")


def test_a_password_never_goes_to_a_broker_its_source_does_not_name(
    home: Path, daemon_file: str, own_file: Path
) -> None:
    assert own_file.is_file()
    own = settle(home, flags={"config": daemon_file})
    assert (own.broker.username, password(own), own.broker.root) == ("ann.login", "own", "rea/v1")
    other = settle(home, flags={"config": daemon_file, "broker": "mqtt://127.0.0.1:2000"})
    assert (other.broker.username, password(other)) == (None, None)
    same = settle(home, flags={"config": daemon_file, "broker": "mqtt://127.0.0.1:1999"})
    assert (same.broker.username, password(same)) == ("boiler-1", "daemon's")


def test_a_login_in_the_environment_goes_to_the_broker_that_is_chosen(home: Path, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("env")
    environ = {"REA_EDGE_USERNAME": "eve", "REA_EDGE_PASSWORD_FILE": str(tmp_path / "p"), "REA_EDGE_INSECURE": "1"}
    found = settle(home, flags={"broker": "mqtt://broker.example", "node": "n"}, environ=environ)
    assert (found.broker.url, found.who, password(found)) == ("mqtt://broker.example", "eve", "env")


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        ({"broker": "mqtt://broker.example"}, {}, "broker.url: mqtt beyond loopback"),
        ({"broker": "http://a"}, {}, "broker.url: expected a URL of mqtt"),
        ({"who": "a/b"}, {}, "who: expected 1 to 36"),
        ({"node": "+"}, {}, "node: expected 1 to 36"),
        ({}, {"USER": "a b"}, "who: expected 1 to 36"),
        ({}, {"REA_EDGE_PROTOCOL": "3"}, "broker.protocol: expected one of auto, 5, 3.1.1, got '3'"),
        ({"config": "/nonexistent/x.toml"}, {}, "/nonexistent/x.toml: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    home: Path, flags: dict[str, str], environ: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        settle(home, flags=flags, environ=environ)
    assert str(caught.value).startswith(said)


def test_a_mistake_in_client_toml_names_the_file(home: Path, own_file: Path) -> None:
    own_file.write_text("whom = 'ann'\n")
    with pytest.raises(ConfigInvalid) as caught:
        settle(home)
    assert str(caught.value) == f"whom: unknown key; there are node, who, signing_key_file, broker (in {own_file})"


def test_the_client_settings_never_show_the_password(home: Path, daemon_file: str) -> None:
    assert "daemon's" not in repr(settle(home, flags={"config": daemon_file}))
