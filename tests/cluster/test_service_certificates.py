"""Real processes that know each other by certificates: whole ways of rows, wrong services, and certificates that change."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headgate
from demo.ports import free_port
from support.bad_batches import SCHEMA
from support.certificates import DAY, Authority, Certificate
from support.cluster import Cluster
from support.committed_log import open_bytes
from support.processes import READY_S, Process
from support.scene import keys_of
from support.shares import written

SERVICES = ("coordinator", "writer", "compactor")
ROW = {"ts": 1, "note": ""}


class Files:
    """Certificates of all services, and the flags that name them; ``put`` replaces what lies there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def put(self, authority: Authority, name: str) -> None:
        """Newly issued ones."""
        for service in SERVICES:
            self._copy(authority.issue(f"{name}-{service}", [f"{service}.headgate.internal"]), service)
        shutil.copy(authority.cert, self._folder / "ca.pem")

    def add(self, name: str, issued: Certificate) -> list[str]:
        """One more; returns its flags."""
        self._copy(issued, name)
        return self.flags(name)

    def flags(self, name: str) -> list[str]:
        pairs = {"cert": f"{name}.pem", "key": f"{name}.key", "ca": "ca.pem"}
        return [word for what, file in pairs.items() for word in (f"--cluster-{what}", str(self._folder / file))]

    def _copy(self, issued: Certificate, name: str) -> None:
        shutil.copy(issued.key, self._folder / f"{name}.key")
        shutil.copy(issued.cert, self._folder / f"{name}.pem")


@contextmanager
def certified(folder: Path, files: Files, **more: list[str]) -> Iterator[Cluster]:
    """``more``: flags of further parts, by name with an underscore."""
    own = f"127.0.0.1:{free_port()}"  # the ready line names another one
    options = {service: files.flags(service) for service in SERVICES}
    options["coordinator"] += ["--cluster-listen", own, "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]
    for service in ("writer", "compactor"):
        options[service] += ["--coordinator", own]
    options["writer"] += ["--cluster-listen", "127.0.0.1:0"]
    options |= {name.replace("_", "-"): flags for name, flags in more.items()}
    with Cluster(folder, compactors=1, options=options) as cluster:
        yield cluster


def load(cluster: Cluster, first: int) -> str:
    """A hundred rows of eight partitions; returns the table's place."""
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        table = hg.create_table("t", SCHEMA, key="id", partition_by="part", ordering="ts", buckets=8, exist_ok=True)
        with table.channel("c") as channel:
            channel.upsert([{**ROW, "id": str(number), "part": f"p{number % 8}"} for number in range(first, first + 100)])
    return table.info.url


def wait_for_log(part: Process, text: str) -> None:
    """Until it is there."""
    deadline = time.monotonic() + READY_S
    while text not in part.log.read_text():
        assert time.monotonic() < deadline, part.tail()
        time.sleep(0.05)


def wait_for_members(cluster: Cluster) -> None:
    """Until two writers and one compactor are registered, and no more."""
    deadline = time.monotonic() + READY_S
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        while (len((status := hg.status()).writers), len(status.compactors)) != (2, 1):
            assert time.monotonic() < deadline, status
            time.sleep(0.05)


@pytest.mark.slow
def test_rows_go_all_the_way_and_no_other_role_or_authority_gets_in(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    files = Files(tmp_path / "files")
    files.put(ours, "first")
    names = ["writer.headgate.internal"]
    strangers = {
        "writer_7": files.add("compactor-as-writer", ours.issue("wrong", ["compactor.headgate.internal"])),
        "writer_8": files.add("expired", ours.issue("expired", names, valid=-DAY / 2)),
        "writer_9": files.add("foreign", theirs.issue("foreign", names)),
    }
    with certified(tmp_path / "cluster", files, **strangers) as cluster:
        parts = {name: cluster.start(name.replace("_", "-"), wait=False) for name in strangers}
        wait_for_log(parts["writer_7"], "coordinator refuses this process")
        assert "only writer may call" in parts["writer_7"].log.read_text()
        wait_for_log(parts["writer_8"], "has expired")
        wait_for_log(parts["writer_9"], "it may refuse cluster_cert")
        url, rows = load(cluster, 0), 100
        while len(written(open_bytes(url))[-1]) < 2:  # both writers take part soon
            load(cluster, rows)
            rows += 100
        assert len(keys_of(url)) == rows
        wait_for_members(cluster)
        assert not [name for name, part in parts.items() if part.address]
        for part in parts.values():
            part.kill()


@pytest.mark.slow
def test_certificates_of_another_authority_take_over_while_the_cluster_runs(tmp_path: Path) -> None:
    """Open connections go on; each process that comes back, and each that finds it again, shows what lies there now."""
    files = Files(tmp_path / "files")
    files.put(Authority(tmp_path / "first"), "first")
    with certified(tmp_path / "cluster", files) as cluster:
        url = load(cluster, 0)
        files.put(Authority(tmp_path / "second"), "second")
        load(cluster, 100)
        for number, name in enumerate(("coordinator-1", "writer-1", "compactor-1"), 2):
            cluster.restart(name)
            load(cluster, 100 * number)
        assert len(keys_of(url)) == 500
        wait_for_members(cluster)
