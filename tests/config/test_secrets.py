"""`[secrets]`: what tools may need is read from files of its own, and hidden wherever it could show."""

from pathlib import Path

import pytest

from rea_edge.config import Settings, config_hash, public
from tests.config.test_settings import read, refusal

TABLE = '[secrets]\nweather_key_file = "weather"\n'


def written(folder: Path, name: str, text: str, mode: int = 0o600) -> Path:
    (folder / name).write_text(text)
    (folder / name).chmod(mode)
    return folder / name


def shown(settings: Settings) -> dict[str, str]:
    return {name: secret.reveal() for name, secret in settings.tool_secrets.items()}


def test_a_secret_is_the_line_of_its_file(tmp_path: Path) -> None:
    written(tmp_path, "weather", "open sesame\n", 0o640)
    found = read(tmp_path, TABLE)
    assert shown(found) == {"weather_key": "open sesame"} and found.secrets == ("open sesame",)
    assert "sesame" not in repr(found) + repr(public(found)) + config_hash(found)


def test_a_secret_may_come_as_a_credential_and_a_named_file_wins(tmp_path: Path) -> None:
    written(tmp_path, "weather", "from the file")
    written(tmp_path, "secret_weather_key", "from systemd")
    written(tmp_path, "secret_other_key", "from systemd too")
    found = read(tmp_path, TABLE, CREDENTIALS_DIRECTORY=str(tmp_path))
    assert shown(found) == {"other_key": "from systemd too", "weather_key": "from the file"}


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        pytest.param("open sesame", 0o604, "any user can read or write", id="anybody can read it"),
        pytest.param("open sesame", 0o602, "any user can read or write", id="anybody can write it"),
        pytest.param("1234567", 0o600, "at least 8 characters", id="a word"),
        pytest.param("", 0o600, "must hold one line", id="empty"),
        pytest.param("one line\nand another", 0o600, "must hold one line", id="a whole file"),
    ],
)
def test_a_secret_that_could_not_be_kept_is_refused(tmp_path: Path, text: str, mode: int, said: str) -> None:
    written(tmp_path, "weather", text, mode)
    words = refusal(tmp_path, TABLE)
    assert words.startswith("secrets.weather_key_file: ") and said in words and (not text or text not in words)


@pytest.mark.parametrize("key", ["weather_key", "Weather_file", "_file"])
def test_a_key_that_names_no_file_of_a_secret_is_refused_without_its_value(tmp_path: Path, key: str) -> None:
    words = refusal(tmp_path, f'[secrets]\n{key} = "open sesame"')
    assert words.startswith(f"secrets.{key}: unknown key; each is the name of a secret, such as weather_key_file")
    assert "sesame" not in words


def test_a_file_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    assert refusal(tmp_path, TABLE).startswith(f"secrets.weather_key_file: {tmp_path}/weather: cannot be read")
