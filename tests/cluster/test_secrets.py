"""No secret of a real cluster is where others read it, also when things fail: command lines, logs, errors, status, metrics.

The environment and the memory of a process are its user's own, and root's; they are not looked at.
"""

import http.client
import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import psutil
import pytest

from demo.dev_cluster import DevCluster
from demo.ports import free_port
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from support.processes import READY_S, Process

pytestmark = pytest.mark.slow

STORE = {
    "AWS_ACCESS_KEY_ID": "AKIDMARKED",
    "AWS_SECRET_ACCESS_KEY": "marked-s3-secret-1f",
    "AWS_SESSION_TOKEN": "marked-s3-session-2e",
}
CLUSTER_TOKEN = "marked-cluster-token-4c"
DEBUG = {"HEADGATE_LOG_LEVEL": "debug", "HEADGATE_LOG_FORMAT": "json"}
ENVIRONMENT = {**STORE, **DEBUG, "HEADGATE_METRICS_LISTEN": "127.0.0.1:0"}


@dataclass
class Guarded:
    """A cluster of `headgate dev` with its ``secrets`` by name, the processes, and all that was ``said`` so far."""

    cluster: DevCluster
    state: Path
    processes: list[psutil.Process]
    secrets: Mapping[str, str]
    said: dict[str, str] = field(default_factory=dict)

    @property
    def redis_password(self) -> str:
        return self.secrets["Redis's password"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder, state = tmp_path_factory.mktemp("s"), tmp_path_factory.mktemp("st")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, "XDG_STATE_HOME": str(state)}.items():
            patch.setenv(name, value)
        with DevCluster((folder / "tables").as_uri(), folder / "logs", "500ms", free_port()) as cluster:
            processes = [psutil.Process(fields["pid"]) for _, fields in cluster.events if fields["event"] == "started"]
            yield Guarded(cluster, state, processes, secrets_of(state, processes))


def secrets_of(state: Path, processes: list[psutil.Process]) -> dict[str, str]:
    """From where the user alone may look. Of a key its first line stands for it."""
    found = {str(path): path.read_text().splitlines()[1] for path in state.rglob("*.key")}
    found["token"] = next(state.rglob("token")).read_text().strip()
    found["Redis's password"] = next(password for each in processes if (password := redis_password_in(each)))
    return (
        found | {name: value for name, value in STORE.items() if name != "AWS_ACCESS_KEY_ID"} | {"cluster_token": CLUSTER_TOKEN}
    )


def redis_password_in(process: psutil.Process) -> str:
    """In its memory, as it is written nowhere; "" if it has none."""
    with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
            bounds, rights, *_ = line.split()
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            if rights.startswith("rw"):
                memory.seek(begin)
                if found := re.search(rb"unix://headgate:([0-9a-f]{32})@", memory.read(end - begin) or b""):
                    return found[1].decode()
    return ""


def test_no_secret_is_where_others_can_read_it(
    guarded: Guarded, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(guarded.secrets) >= 4 + 1 + 1 + 2 + 1, guarded.secrets.keys()
    assert all(len(secret) >= 16 for secret in guarded.secrets.values())
    monkeypatch.delenv("HEADGATE_METRICS_LISTEN")
    use(guarded, tmp_path, capfd)
    call_wrongly(guarded, tmp_path, capfd, monkeypatch)
    fail_processes(guarded, tmp_path, capfd)
    guarded.said["events"] = json.dumps([fields for _, fields in guarded.cluster.events])
    guarded.said.update({path.name: path.read_text(errors="replace") for path in guarded.cluster.logs.iterdir()})
    pages = metrics(guarded.processes)
    assert len(pages) == 4, "of a coordinator, two writers and a compactor"
    guarded.said.update(pages)
    assert not leaks(guarded)


def leaks(guarded: Guarded) -> list[tuple[str, str]]:
    """Which secret was said where."""
    return [(what, name) for what, text in guarded.said.items() for name, secret in guarded.secrets.items() if secret in text]


def test_a_secret_that_is_said_is_found(guarded: Guarded) -> None:
    said = {"a log": f"x {guarded.secrets['token']}", "another": "nothing"}
    assert leaks(Guarded(guarded.cluster, guarded.state, [], guarded.secrets, said)) == [("a log", "token")]


def use(guarded: Guarded, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What goes well says much, too."""
    (rows := folder / "rows.csv").write_text("id\n1\n")
    address = ["--connect", guarded.cluster.address]
    commands = {
        "load": ["load", str(rows), "--table", "t", "--create", "--key", "id"],
        "status": ["status"],
        "list": ["table", "list"],
    }
    for what, command in commands.items():
        assert run([*command, "--json", *address]) == ExitCode.OK
        guarded.said[what] = "".join(capfd.readouterr())
        assert '"t"' in guarded.said[what]


def call_wrongly(guarded: Guarded, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and commands that fail with secrets at hand; each says something."""
    token, address = guarded.secrets["token"], guarded.cluster.address
    (key := folder / "token").write_text(token + "\nmore")
    away = {"AWS_ENDPOINT": f"http://127.0.0.1:{free_port()}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "eu"}
    wrong: list[tuple[str, list[str], Mapping[str, str]]] = [
        ("S3 is away", ["table", "timeline", "s3://nowhere/t"], away),
        (
            "S3's key has two lines",
            ["table", "timeline", "s3://nowhere/t"],
            {"AWS_SECRET_ACCESS_KEY": f"{STORE['AWS_SECRET_ACCESS_KEY']}\nx"},
        ),
        ("an address with a key", ["table", "timeline", f"s3://a:{STORE['AWS_SECRET_ACCESS_KEY']}@nowhere/t"], {}),
        (
            "a token is wrong",
            ["status", "--connect", address, "--tls-ca", str(next(guarded.state.rglob("ca.pem")))],
            {"HEADGATE_TOKEN": f"{token}x"},
        ),
        ("a token as an option", ["status", "--connect", address, "--token", token], {}),
        ("a token has two lines", ["status", "--connect", address, "--token-file", str(key)], {}),
        ("nobody is there", ["status", "--connect", f"127.0.0.1:{free_port()}", "--timeout", "0.2"], {"HEADGATE_TOKEN": token}),
    ]
    for what, arguments, environment in wrong:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            assert run([*arguments, "--json"]) != ExitCode.OK, what
        guarded.said[what] = "".join(capfd.readouterr())
        assert guarded.said[what].strip(), what
    guarded.said["not a message"] = malformed(guarded, token)


def malformed(guarded: Guarded, token: str) -> str:
    """What a server answers to bytes that are none of its messages."""
    trusted = grpc.ssl_channel_credentials(next(guarded.state.rglob("ca.pem")).read_bytes())
    with grpc.secure_channel(guarded.cluster.address, trusted) as channel:
        ask = channel.unary_unary("/headgate.api.v1.TableService/CreateTable")
        with pytest.raises(grpc.RpcError) as failed:
            ask(token.encode(), metadata=[("authorization", f"Bearer {token}")])
    return str(failed.value)


Failing = tuple[str, str, list[str], Mapping[str, str], str]
"""What fails, the service, its options, its environment, and what its log says at last."""


def failing(guarded: Guarded, folder: Path, waiting: str) -> list[Failing]:
    """Services that do not get what they need. `waiting` is where the one listens that waits for Redis."""
    socket = next(guarded.state.rglob("redis.sock"))
    redis = {"HEADGATE_REDIS": f"unix://headgate:{guarded.redis_password}@{socket}?db=0"}
    refused = {"HEADGATE_REDIS": redis["HEADGATE_REDIS"].replace("@", "x@")}
    s3 = {"AWS_ENDPOINT": f"http://127.0.0.1:{free_port()}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "eu"}
    secret = next(value for name, value in guarded.secrets.items() if name.endswith(".key"))
    (broken := folder / "broken.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n")
    broken_pair = ["--tls-cert", str(next(guarded.state.rglob("server.pem"))), "--tls-key", str(broken)]
    text_of_a_key = {"HEADGATE_TLS_KEY": broken.read_text(), "HEADGATE_TLS_CERT": "c"}
    token = {"HEADGATE_CLUSTER_TOKEN": CLUSTER_TOKEN}
    store, nobody = ["--store", str(folder)], ["--coordinator", f"127.0.0.1:{free_port()}"]
    return [
        ("Redis refuses", "coordinator", [*store, "--listen", waiting], refused, "it waits for Redis"),
        ("S3 is away, too", "coordinator", ["--store", "s3://nowhere/t"], {**redis, **s3}, "cannot be listed"),
        ("a broken key", "coordinator", [*store, *broken_pair], redis, "is not a private key"),
        ("a wrong setting", "coordinator", [*store, "--lease-ttl", "1"], {**redis, **token}, "lease"),
        ("a key and not its path", "writer", nobody, text_of_a_key, "give the file's path"),
        ("no coordinator", "writer", nobody, token, "does not answer"),
    ]


def fail_processes(guarded: Guarded, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Runs each failing service until its log says so; command lines are read while all of them run."""
    waiting = f"127.0.0.1:{free_port()}"  # of the one that is never ready, so that no line of its log names it
    with ExitStack() as running:
        started: list[tuple[Process, str]] = []
        for what, kind, flags, environment, until in failing(guarded, folder, waiting):
            listen = [] if "--listen" in flags else ["--listen", "127.0.0.1:0"]
            command = [sys.executable, "-m", f"headgate_{kind}", *listen, *flags]
            process = Process(what, command, folder / f"{what}.log", env={**STORE, **DEBUG, **environment})
            running.callback(process.kill)
            started.append((process, until))
        for process, until in started:
            wait_for(process, until)
        guarded.said.update(command_lines())
        assert run(["status", "--json", "--connect", waiting]) == ExitCode.OK
        guarded.said["what is wrong with Redis"] = "".join(capfd.readouterr())
        assert "redis" in guarded.said["what is wrong with Redis"].lower()
    guarded.said.update({process.name: process.log.read_text() for process, _ in started})


def wait_for(process: Process, text: str) -> None:
    """Until its log says so."""
    deadline = time.monotonic() + READY_S
    while text not in process.log.read_text():
        assert time.monotonic() < deadline, process.tail()
        time.sleep(0.1)


def command_lines() -> dict[str, str]:
    """Of all processes of this machine, as every user sees them."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[str(path)] = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
    assert any("headgate_coordinator" in text for text in found.values())
    return found


def metrics(processes: list[psutil.Process]) -> dict[str, str]:
    """What Prometheus reads, by address: those of their servers that speak HTTP."""
    found = {}
    for process in processes:
        for each in process.net_connections("tcp"):
            address = f"{each.laddr.ip}:{each.laddr.port}"
            try:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=READY_S) as answer:
                    found[address] = answer.read().decode()
            except (OSError, http.client.HTTPException):
                continue
    return found
