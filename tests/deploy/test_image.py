"""The image of deploy/docker: what is in it, what may be done in it, and that its services serve and drain there."""

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import psutil
import pyarrow as pa
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import headgate
from support.image import REVISION, Image, built_image, first_process, kill_container
from support.processes import READY_S, Process
from support.redis_server import start_redis

pytestmark = pytest.mark.slow
LARGEST = 356_000_000
"""Bytes of its files. 354 MB were measured, of which Debian and Python take 128."""
CPU_S = 2.0
"""Until a service says that it serves; 0.7 were measured."""
SERVICES = ("coordinator", "writer", "compactor")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return built_image(tmp_path_factory)


def files(image: Image) -> Iterator[tuple[str, os.stat_result]]:
    for folder, folders, names in os.walk(image.root):
        for name in (*folders, *names):
            path = Path(folder, name)
            yield str(path.relative_to(image.root)), path.lstat()


def test_it_is_small_and_holds_no_tests_no_spark_and_no_pip_of_its_own(image: Image) -> None:
    found = dict(files(image))
    sizes = {each.st_ino: each.st_size for each in found.values() if stat.S_ISREG(each.st_mode)}
    assert sum(sizes.values()) <= LARGEST
    packages = {
        name.split("site-packages/")[1].split("/")[0].lower() for name in found if "opt/venv" in name and "site-packages/" in name
    }
    assert {"headgate", "headgate_tables", "pyarrow"} <= packages
    assert not packages & {"pip", "pyspark", "headgate_spark", "pytest", "duckdb", "hudi", "headgate_demo", "tests", "hatchling"}
    assert not [name for name in found if name.startswith("opt") and name.endswith("/tests")]


def test_its_user_is_a_number_and_may_write_only_where_volumes_lie(image: Image) -> None:
    assert image.config["User"] == "10001:10001"
    writable = {
        name
        for name, each in files(image)
        if not stat.S_ISLNK(each.st_mode) and (each.st_uid == 10001 or each.st_gid == 10001 or each.st_mode & stat.S_IWOTH)
    }
    assert {name for name in writable if not name.startswith(("dev/", "tmp", "var/tmp", "run/lock"))} == {"data", "etc/headgate"}
    tried = image.run("-c", "open('/opt/venv/x', 'w')", entrypoint=["python"])
    assert "Read-only file system" in tried.stderr


def test_it_ends_by_sigterm_and_says_what_it_is(image: Image) -> None:
    assert image.config["StopSignal"] == "SIGTERM"
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in image.config["Labels"].items()}
    said = image.run("--version").stdout.strip()
    assert said == f"headgate {labels['version']}"
    assert labels["revision"] == REVISION


@pytest.mark.parametrize("command", ["headgate", *(f"headgate-{service}" for service in SERVICES)])
def test_every_command_is_there(command: str, image: Image) -> None:
    done = image.run("--help", entrypoint=[command])
    assert done.returncode == 0, done.stderr
    assert "--config FILE" in done.stdout or "Commands:" in done.stdout


def test_redis_is_there_for_those_who_want_it_from_the_same_image(image: Image) -> None:
    assert "Valkey server v=9" in image.run("--version", entrypoint=["valkey-server"]).stdout


def test_bytecode_of_all_that_a_service_imports_is_there(image: Image) -> None:
    """What is not compiled is compiled at each start, as nothing can be kept: seconds of CPU."""
    code = "import sys, headgate_writer.process; [print(m.__file__) for m in sys.modules.values() if getattr(m, '__file__', '')]"
    imported = image.run("-c", code, entrypoint=["python"]).stdout.split()
    sources = [Path(name) for name in imported if name.endswith(".py")]
    assert len(sources) > 500
    tree = image.root / "opt" / "pycache"
    missing = [path for path in sources if not [*(tree / path.relative_to("/").parent).glob(f"{path.stem}.cpython-*.pyc")]]
    assert not missing


def test_services_serve_within_two_seconds_of_cpu_and_drain(image: Image, tmp_path: Path) -> None:
    """As containers: process 1, no root, nothing to write but /tmp and the store. A client never notices that its writer ends."""
    (store := tmp_path / "data").mkdir()
    store.chmod(0o777)
    running: dict[str, Process] = {}
    with ExitStack() as ends:
        redis = start_redis(tmp_path / "redis.log")
        ends.callback(redis.kill)
        for name in ("coordinator", "writer-1", "writer-2", "compactor"):
            flags = ["--coordinator", running["coordinator"].address] if running else []
            flags = flags or ["--store", "file:///data", "--redis", f"redis://{redis.address}/0"]
            command = image.command(flags, entrypoint=[f"headgate-{name.partition('-')[0]}"], mounts={store: "/data"})
            running[name] = Process(name, command, tmp_path / f"{name}.log")
            ends.callback(kill_container, running[name])
            assert serves(running[name].wait_ready())
            assert sum(psutil.Process(first_process(running[name])).cpu_times()[:2]) <= CPU_S, name
        with headgate.connect(running["coordinator"].address) as hg:
            table = hg.create_table("t", pa.schema([("id", pa.int64())]), key="id")
            with table.channel("c") as channel:
                channel.upsert([{"id": number} for number in range(100)])
                channel.flush("received")
                end(running["writer-1"])
                channel.upsert([{"id": number} for number in range(100, 200)])
                channel.flush("queryable")
        scanned = image.run("table", "scan", "/data/t", "--json", "--limit", "1000", mounts={store: "/data"})
        assert len(scanned.stdout.splitlines()) == 200, scanned.stderr
        for name in ("writer-2", "compactor", "coordinator"):
            end(running[name])


def serves(address: str) -> bool:
    with grpc.insecure_channel(address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=READY_S)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def end(container: Process) -> None:
    """As `docker stop` does."""
    container.expect_end()
    os.kill(first_process(container), signal.SIGTERM)
    assert container.wait_end() == 0, container.tail()
    assert "draining" in container.log.read_text(), "it was asked"
