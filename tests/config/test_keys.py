"""People's keys as the daemon and the commands read them: who has one, from which files, and what is refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rea_edge.config import Settings, config_hash, load, public
from rea_edge.config.client import client_settings
from rea_edge.errors import ConfigInvalid

ANN, BOB = "a1" * 32, "b2" * 16
BOTH = '[access]\nidentity = "keys"\nkeys = {ann = "ann.key", bob = "keys/bob"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    written(tmp_path / "ann.key", f"{ANN}\n")
    written(tmp_path / "keys" / "bob", f"\ufeff{BOB.upper()}\r\n")
    return tmp_path


def written(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def loaded(folder: Path, text: str, **environ: str) -> Settings:
    (folder / "config.toml").write_text(text)
    return load(folder / "config.toml", {"STATE_DIRECTORY": str(folder), **environ})


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(folder, text)
    assert ANN not in str(caught.value)
    return str(caught.value)


def test_keys_are_read_from_files_beside_the_configuration_and_shown_nowhere(folder: Path) -> None:
    found = loaded(folder, BOTH)
    assert found.access.key_bytes == {"ann": bytes.fromhex(ANN), "bob": bytes.fromhex(BOB)}
    assert {ANN, BOB.upper()} <= set(found.secrets)
    shown = f"{found!r} {public(found)} {config_hash(found)}"
    assert ANN not in shown and BOB not in shown.lower()


@pytest.mark.parametrize(
    ("access", "said"),
    [
        pytest.param('identity = "keys"', "access.keys: with identity", id="nobody could send"),
        pytest.param('keys = {ann = "ann.key"}', "access.keys: needs identity", id="every other name is free"),
        pytest.param(
            'identity = "keys"\nkeys = {ann = "ann.key"}\noperators = ["zoe"]',
            "access.operators[0]: zoe has no key", id="an operator without a key",
        ),
        pytest.param(
            'identity = "keys"\nkeys = {ann = "ann.key"}\nsenders = ["ann", "zoe"]',
            "access.senders[1]: zoe has no key", id="a sender without a key",
        ),
        pytest.param(
            'identity = "keys"\nkeys = {ann = "ann.key"}\ncallers = {x = ["zoe"]}',
            "access.callers.x[0]: zoe has no key", id="a caller without a key",
        ),
        pytest.param(
            'identity = "keys"\nkeys = {ann = "ann.key"}\n[gate.x]\nconfirm = "always"\napprovers = ["zoe"]',
            "gate.x.approvers[0]: zoe has no key", id="an approver without a key",
        ),
        pytest.param('identity = "keys"\nkeys = {"a/b" = "ann.key"}', "access.keys.a/b: expected 1 to 36", id="no name"),
        pytest.param('identity = "keys"\nkeys = {"" = "ann.key"}', "access.keys.: expected 1 to 36", id="an empty name"),
        pytest.param('identity = "keys"\nkeys = {ann = ""}', "access.keys.ann: ", id="an empty path"),
        pytest.param('identity = "keys"\nkeys = {ann = "gone"}', "access.keys.ann: ", id="a file that is gone"),
        pytest.param(
            'identity = "keys"\nkeys = {ann = "ann.key", zoe = "./ann.key"}', "access.keys.zoe: ", id="one key for two"
        ),
        pytest.param(f'identity = "keys"\nkey_texts = {{ann = "{BOB}"}}', "access.key_texts", id="inline"),
    ],
)  # fmt: skip
def test_what_would_leave_a_name_open_or_useless_is_refused(folder: Path, access: str, said: str) -> None:
    assert refusal(folder, f"[access]\n{access}\n").startswith(said)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        pytest.param(ANN, 0o640, "others may read or write it (mode 0640): chmod 600", id="the group may read it"),
        pytest.param(ANN, 0o604, "others may read or write it", id="anyone may read it"),
        pytest.param(ANN, 0o620, "others may read or write it", id="the group may write it"),
        pytest.param("secret", 0o600, "expected hex digits and nothing else", id="a password"),
        pytest.param("00" * 15, 0o600, "expected at least 32 hex digits, got 30", id="too short"),
        pytest.param("", 0o600, "expected at least 32 hex digits, got 0", id="empty"),
        pytest.param("00" * 600, 0o600, "more than 1024 bytes", id="a file that was mixed up"),
    ],
)
def test_a_key_file_that_is_open_or_no_key_is_refused_by_name(folder: Path, text: str, mode: int, said: str) -> None:
    file = written(folder / "zoe", text, mode)
    told = refusal(folder, '[access]\nidentity = "keys"\nkeys = {zoe = "zoe"}\n')
    assert told.startswith(f"access.keys.zoe: {file}: {said}")


def test_systemds_credentials_are_guarded_by_their_folder(folder: Path) -> None:
    # The service's user reads them by an access list, which shows as the mode of the group.
    given = written(folder / "keys" / "key_ann", ANN, 0o440)
    text = f'[access]\nidentity = "keys"\nkeys = {{ann = "{given}"}}\n'
    assert loaded(folder, text, CREDENTIALS_DIRECTORY=str(folder / "keys")).access.key_bytes
    assert "mode 0440" in refusal(folder, text)


# --- commands


def settle(home: Path, environ: Mapping[str, str], **flags: str) -> bytes | None:
    found = client_settings({"broker": "mqtt://127.0.0.1", **flags}, {"HOME": str(home), "USER": "ann", **environ})
    assert ANN not in repr(found)
    return bytes.fromhex(found.signing_key.reveal()) if found.signing_key else None


def test_a_command_signs_with_the_key_of_the_first_source_that_names_one(folder: Path) -> None:
    assert settle(folder, {}) is None
    own = folder / ".config/rea-edge"
    own.mkdir(parents=True)
    written(own / "client.toml", 'signing_key_file = "mine"\n')
    written(own / "mine", "c3" * 16)
    environ = {"REA_EDGE_SIGNING_KEY_FILE": str(folder / "keys/bob")}
    assert settle(folder, {}) == bytes.fromhex("c3" * 16)
    assert settle(folder, environ) == bytes.fromhex(BOB)
    assert settle(folder, environ, signing_key_file=str(folder / "ann.key")) == bytes.fromhex(ANN)


def test_a_commands_key_that_others_may_read_is_refused(folder: Path) -> None:
    (folder / "ann.key").chmod(0o644)
    with pytest.raises(ConfigInvalid, match="signing_key_file: .*chmod 600"):
        settle(folder, {}, signing_key_file=str(folder / "ann.key"))
