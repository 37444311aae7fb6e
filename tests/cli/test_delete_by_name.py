"""`headgate table delete` by name: through a running cluster, to the last byte of what was deleted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate as sdk
import headgate.deleting
from headgate.reading.matching import Matching
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from support.cluster import Cluster
from support.erased import files_holding
from support.processes import READY_S
from support.readers import read_by_hudi_rs
from support.waiting import wait_until

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
SECRET = "Wilhelmine-Unverwechselbar"
SOON = ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("named") / "cluster", writers=1, options={"coordinator": SOON}, compactors=1) as made:
        yield made


@pytest.fixture
def table(cluster: Cluster, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[sdk.Table]:
    """Rows 0 to 99, of which every tenth holds the secret, in a base file and in logs."""
    monkeypatch.setenv("HEADGATE_CONNECT", cluster.address)
    with sdk.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        made = hg.create_table(request.node.name[:40], SCHEMA, key="id", buckets=2)
        with made.channel("c") as channel:
            channel.upsert([{"id": number, "note": SECRET if number % 10 == 0 else "x"} for number in range(50)])
        made.compact()
        with made.channel("c") as channel:
            channel.upsert([{"id": number, "note": SECRET if number % 10 == 0 else "x"} for number in range(50, 100)])
        yield made


def left(table: sdk.Table) -> list[int]:
    return sorted(read_by_hudi_rs(folder_of(table))["id"].to_pylist())


def folder_of(table: sdk.Table) -> Path:
    return Path(table.info.url.removeprefix("file://"))


@pytest.mark.slow
def test_rows_are_counted_and_deleted_through_a_channel(headgate: Any, table: sdk.Table) -> None:
    command = ("table", "delete", table.info.name, "--where", f"note = '{SECRET}'")
    code, (found,), _ = headgate(*command, "--dry-run")
    assert (code, found["rows"], len(found["sample"])) == (ExitCode.OK, 10, 10)
    assert len(left(table)) == 100
    code, (done,), _ = headgate(*command, "--yes")
    assert (code, done["rows"], done["left"], done["savepoints"]) == (ExitCode.OK, 10, 0, [])
    assert {each.name: each.committed_offset for each in table.channels("delete:")} == {done["channel"]: done["offset"]}
    assert left(table) == [number for number in range(100) if number % 10]
    code, (done,), _ = headgate(*command, "--yes", "--channel", "mine")
    assert (code, done["rows"], done["channel"]) == (ExitCode.OK, 0, "")


@pytest.mark.slow
def test_rows_that_came_meanwhile_are_told_with_an_exit_code_of_their_own(
    table: sdk.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Meanwhile(Matching):
        def tables(self) -> Iterator[pa.Table]:
            with table.channel("c") as channel:
                channel.upsert([{"id": 1000, "note": "x"}])
            monkeypatch.setattr(headgate.deleting, "Matching", Matching)
            yield from super().tables()

    monkeypatch.setattr(headgate.deleting, "Matching", Meanwhile)
    command = ["table", "delete", table.info.name, "--where", "note = 'x'", "--yes"]
    assert run(command) == ExitCode.PROBLEMS
    assert "Rows that match came meanwhile: 1." in capsys.readouterr().out
    assert left(table) == [*range(0, 100, 10), 1000]
    assert run([*command, "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["left"] == 0
    assert left(table) == [*range(0, 100, 10)]


def test_the_question_says_that_the_later_write_wins(
    table: sdk.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True, "readline": lambda _: "n\n"})())
    assert run(["table", "delete", table.info.name, "--where", "id < 3"]) == ExitCode.INTERRUPTED
    said = capsys.readouterr().err
    assert "no ordering column" in said
    assert "Delete 3 rows of" in said
    assert len(left(table)) == 100


@pytest.mark.slow
def test_after_the_commands_of_the_page_no_file_has_the_bytes(table: sdk.Table) -> None:
    """While rows come, as the page says: without a newer commit nothing has replaced what the compaction did."""
    name, folder = table.info.name, folder_of(table)
    assert run(["table", "delete", name, "--where", f"note = '{SECRET}'", "--yes"]) == ExitCode.OK
    assert files_holding(folder, SECRET), "readers see no row, and the bytes are there"
    assert run(["compact", name]) == ExitCode.OK
    assert run(["configure", name, "hoodie.clean.commits.retained=1", "headgate.clean.min.age=0"]) == ExitCode.OK
    with table.channel("c") as channel:
        channel.upsert([{"id": 1, "note": "later"}])

    def cleaned() -> bool:
        assert run(["clean", name]) == ExitCode.OK
        return not files_holding(folder, SECRET)

    wait_until("no file holds the text", cleaned)
    unset = ["--unset", "hoodie.clean.commits.retained", "--unset", "headgate.clean.min.age"]
    assert run(["configure", name, *unset]) == ExitCode.OK
    assert left(table) == [number for number in range(100) if number % 10]
