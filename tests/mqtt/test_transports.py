"""A link over each transport, on Mosquitto: Unix socket, WebSocket, TLS with a client's certificate."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rea_edge.mqtt import LinkSettings
from tests.brokers import Mosquitto, free_port, wait_until
from tests.mqtt.station import Station, running


@contextmanager
def mosquitto_with(folder: Path, *extra: str) -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, extra=extra)
    try:
        yield broker.start()
    finally:
        broker.stop()


def assert_talks(settings: LinkSettings) -> None:
    with running(station := Station(settings, "t/#")):
        for n in range(20):
            station.post("t/x", b"%d" % n)
        station.post("t/x", bytes(30_000))
        station.wait_payloads(*(b"%d" % n for n in range(20)), bytes(30_000))


def test_over_a_unix_socket(tmp_path: Path, protocol: str) -> None:
    path = tmp_path / "m.sock"
    with mosquitto_with(tmp_path, f"listener 0 {path}"):
        assert_talks(settings(f"unix://{path}", protocol=protocol))


def test_over_a_web_socket(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    with mosquitto_with(tmp_path, f"listener {port} 127.0.0.1", "protocol websockets"):
        assert_talks(settings(f"ws://127.0.0.1:{port}", protocol=protocol))


class TestEncrypted:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Callable[[str], tuple[str, str]]:
        """Makes a self-signed certificate and its key for a name, valid for 127.0.0.1."""
        program = shutil.which("openssl")
        if program is None:
            pytest.skip("openssl is not installed: no certificates can be made")

        def make(name: str) -> tuple[str, str]:
            cert, key = str(tmp_path / f"{name}.crt"), str(tmp_path / f"{name}.key")
            command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            command += ["-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}"]
            subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            return cert, key

        return make

    def test_with_a_clients_certificate(self, tmp_path: Path, certificate: Callable[[str], tuple[str, str]]) -> None:
        (cert, key), (own_cert, own_key), port = certificate("broker"), certificate("node"), free_port()
        tls = [f"listener {port} 127.0.0.1", f"certfile {cert}", f"keyfile {key}", f"cafile {own_cert}"]
        url = f"mqtts://127.0.0.1:{port}"
        with mosquitto_with(tmp_path, *tls, "require_certificate true"):
            assert_talks(settings(url, ca_file=cert, cert_file=own_cert, key_file=own_key))
            refused = {
                "CERTIFICATE_VERIFY_FAILED": settings(url, ca_file=own_cert, cert_file=own_cert, key_file=own_key),
                "": settings(url, ca_file=cert),
            }
            for reason, wrong in refused.items():
                station = Station(wrong)
                try:
                    station.link.start()
                    wait_until(lambda station=station: station.link.state.last_error, "it fails")  # type: ignore[misc]
                    assert reason in station.link.state.last_error
                    assert not station.ups
                finally:
                    station.link.stop(None, 2.0)


def settings(url: str, **more: str) -> LinkSettings:
    return LinkSettings(url=url, client_id="c", reconnect_min_s=0.05, **more)  # type: ignore[arg-type]  # tests only
